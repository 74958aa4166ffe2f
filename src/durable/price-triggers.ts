import type { Clock } from '#kernel/clock.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Log } from '#kernel/log.ts'
import type { TaskKind, Tx } from '#kernel/task.ts'
import { isConflict } from '#store/conflict.ts'
import { query } from '#store/query.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import type { TaskAcceptance } from './accept-task.ts'
import { bodyHash, internalKey } from './idempotency.ts'
import { batchLockWaitMs, isLockTimeout } from './lock-wait.ts'
import { type Notifier, readyTopic } from './notifier.ts'
import { newestKind } from './task-kinds.ts'
import type { Transactions } from './transactions.ts'

type PriceTriggerDeps = {
  transactions: Transactions
  acceptance: TaskAcceptance
  kinds: ReadonlyMap<string, TaskKind>
  notifier: Notifier
  clock: Clock
  log: Log
  instanceId: string
  leaseMs: number
}
export type MarketLease = { market: string; epoch: number }
export type PriceTriggers = {
  /** One instance watches a market; the epoch is the fencing token against a stale watcher. */
  lease(market: string): Promise<MarketLease | undefined>
  /** Fires every armed order that the price crossed, and returns their number. */
  fireTriggers(lease: MarketLease, price: string): Promise<number>
}

/** `only`: the orders of these users; null: of all. */
type CrossedFilter = {
  market: string
  price: string
  now: Date
  only: string[] | null
  except: string[]
}
type ArmedTrigger = { id: string; user_id: string; kind: string; input: JsonObject; oco_group: string | null }

/** Users whose orders wait for their rows, each on a connection. Those of more users stay armed until the next price. */
const blockedUsersMax = 4

const readCrossed = (tx: Tx, { market, price, now, only, except }: CrossedFilter): Promise<ArmedTrigger[]> =>
  query<ArmedTrigger>(
    tx,
    `select id, user_id, kind, input, oco_group from trigger_order where market = $1 and status = 'armed'
       and (expires_at is null or expires_at > $3)
       and ((direction = 'lte' and trigger_price >= $2::numeric) or (direction = 'gte' and trigger_price <= $2::numeric))
       and ($4::uuid[] is null or user_id = any($4::uuid[])) and user_id <> all($5::uuid[])
     order by created_at limit 100 for update skip locked`,
    [market, price, now, only, except],
  )

/** Returns the number of orders that fired, and the users whose rows are locked elsewhere. */
async function fireAll(
  orders: readonly ArmedTrigger[],
  fireOne: (order: ArmedTrigger) => Promise<boolean | 'blocked'>,
): Promise<{ count: number; blocked: Set<string> }> {
  const blocked = new Set<string>()
  let count = 0
  // Transactions lock the event logs of users in one order, which prevents deadlocks.
  for (const order of orders.toSorted((one, other) => one.user_id.localeCompare(other.user_id))) {
    if (blocked.has(order.user_id)) continue
    const fired = await fireOne(order)
    if (fired === 'blocked') blocked.add(order.user_id)
    else if (fired) count += 1
  }
  return { count, blocked }
}

/**
 * One transaction fires the order, inserts its task and cancels its OCO siblings, so each order fires once. A row of a
 * user that is locked elsewhere delays the orders of that user only.
 */
export function createPriceTriggers({
  transactions,
  acceptance,
  kinds,
  notifier,
  clock,
  log,
  instanceId,
  leaseMs,
}: PriceTriggerDeps): PriceTriggers {
  /** False where an OCO sibling fired first. */
  const fire = async (tx: Tx, order: ArmedTrigger, price: string): Promise<boolean> => {
    const kind = newestKind(kinds, order.kind)
    if (!kind) return false
    const won = await query(
      tx,
      `update trigger_order set status = 'fired' where id = $1 and status = 'armed' returning id`,
      [order.id],
    )
    if (won.length === 0) return false
    if (order.oco_group)
      await query(
        tx,
        `update trigger_order set status = 'cancelled' where oco_group = $1 and status in ('waiting', 'armed')`,
        [order.oco_group],
      )
    const taskId = await acceptance.enqueue(tx, {
      userId: order.user_id,
      kind,
      input: order.input,
      admission: {
        data: { trigger_order_id: order.id, trigger_price: price },
        first: Object.keys(kind.steps)[0]!,
        ...(kind.spendOf && { spend: kind.spendOf(order.user_id, order.input) }),
      },
      key: {
        key: internalKey('trigger', order.id),
        operation: `trigger:${order.kind}`,
        hash: bodyHash(order.kind, order.input),
      },
    })
    await query(tx, 'update trigger_order set task_id = $2 where id = $1', [order.id, taskId])
    return true
  }

  /** An order that fails to fire stays armed and does not block the other orders of its market. */
  const fireInSavepoint = async (
    tx: Tx,
    order: ArmedTrigger,
    price: string,
  ): Promise<boolean | 'blocked'> => {
    await query(tx, 'savepoint trigger_order')
    try {
      const fired = await fire(tx, order, price)
      await query(tx, 'release savepoint trigger_order')
      return fired
    } catch (error) {
      if (isDatabaseUnavailable(error) || isConflict(error)) throw error
      await query(tx, 'rollback to savepoint trigger_order')
      if (isLockTimeout(error)) return 'blocked'
      log.error({ error, order: order.id, kind: order.kind }, 'price trigger failed to fire')
      return false
    }
  }

  /** Users whose orders are fired with patience, beside the others of their markets. */
  const waiting = new Set<string>()
  const firePatiently = async (market: string, price: string, userId: string): Promise<void> => {
    waiting.add(userId)
    try {
      const { count } = await transactions.run(async (tx) =>
        fireAll(
          await readCrossed(tx, { market, price, now: clock.now(), only: [userId], except: [] }),
          (order) => fireInSavepoint(tx, order, price),
        ),
      )
      if (count > 0) notifier.notify([readyTopic])
    } catch (error) {
      log.warn({ error, market }, 'price triggers of a blocked user not fired: they stay armed')
    } finally {
      waiting.delete(userId)
    }
  }

  return {
    async lease(market) {
      const [row] = await query<{ epoch: number }>(
        transactions.pool,
        `insert into market_lease as w (market, owner, epoch, lease_until)
           values ($1, $2, 1, clock_timestamp() + make_interval(secs => $3))
         on conflict (market) do update set owner = $2, lease_until = excluded.lease_until,
             epoch = w.epoch + (case when w.owner = $2 then 0 else 1 end)
           where w.owner = $2 or w.owner is null or w.lease_until < clock_timestamp()
         returning epoch`,
        [market, instanceId, leaseMs / 1000],
      )
      return row && { market, epoch: row.epoch }
    },

    async fireTriggers({ market, epoch }, price) {
      const { count, blocked } = await transactions.run(async (tx) => {
        const current = await query(
          tx,
          'select market from market_lease where market = $1 and owner = $2 and epoch = $3 for no key update',
          [market, instanceId, epoch],
        )
        if (current.length === 0) return { count: 0, blocked: [] }
        await query(tx, 'select wait_for_locks($1)', [batchLockWaitMs])
        const everyone = { market, price, now: clock.now(), only: null, except: [...waiting] }
        return fireAll(await readCrossed(tx, everyone), (order) => fireInSavepoint(tx, order, price))
      })
      for (const userId of blocked)
        if (waiting.size < blockedUsersMax) void firePatiently(market, price, userId)
      if (count > 0) notifier.notify([readyTopic])
      return count
    },
  }
}
