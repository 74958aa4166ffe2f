import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { NewEvent, TaskKind, Tx } from '#kernel/task.ts'
import type { TriggerOrder } from '#kernel/trigger-order.ts'
import { isConflict } from '#store/conflict.ts'
import { jsonText, query, settleAll } from '#store/query.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import type { NewTask, TaskAcceptance } from './accept-task.ts'
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
  random: Random
  log: Log
  instanceId: string
  leaseMs: number
}
export type MarketLease = { market: string; epoch: number }
/** Null: the orders that the price of their market decides. */
export type QuoteKey = string | null
export type PriceTriggers = {
  /** One instance watches a market; the epoch is the fencing token against a stale watcher. */
  lease(markets: readonly string[]): Promise<MarketLease[]>
  /** Fires armed orders that the price crossed, at most a batch, and returns their number. */
  fireTriggers(lease: MarketLease, price: string, quoteKey?: QuoteKey): Promise<number>
  /** Ends orders whose time has passed, at most a batch, and returns their number. */
  expire(): Promise<number>
}

type Crossing = { market: string; price: string; quoteKey: QuoteKey }
/** `only`: the orders of these users; null: of all. */
type CrossedFilter = Crossing & { only: string[] | null; except: string[] }
type CrossedOrder = Pick<TriggerOrder, 'id' | 'user_id'>

/** Users whose orders wait for their rows, each on a connection. Those of more users stay armed until the next price. */
const blockedUsersMax = 4
const batchMax = 100

/** Reads the ends of two ranges of an index: the planner expects a condition on the price to match a third of the rows. */
const isCrossedSql = (quoteCondition: string): string => {
  const armed = `from trigger_order where market = $1 and status = 'armed' and ${quoteCondition}`
  return `select coalesce((select max(trigger_price) ${armed} and direction = 'lte') >= $2::numeric, false)
    or coalesce((select min(trigger_price) ${armed} and direction = 'gte') <= $2::numeric, false) as crossed`
}
const isCrossedByPrice = isCrossedSql('quote_key is null')
const isCrossedByQuote = isCrossedSql('quote_key = $3')

/**
 * One transaction fires the orders, inserts their tasks and cancels their OCO siblings, so each order fires once. A row
 * of a user that is locked elsewhere delays the orders of that user only.
 */
export function createPriceTriggers({
  transactions,
  acceptance,
  kinds,
  notifier,
  clock,
  random,
  log,
  instanceId,
  leaseMs,
}: PriceTriggerDeps): PriceTriggers {
  const kindOf = ({ kind, id }: TriggerOrder): TaskKind => {
    const found = newestKind(kinds, kind)
    if (!found)
      throw new Error(`order ${id} creates tasks of the kind ${kind}, which this instance does not know`)
    return found
  }
  const eventsOf = (orders: readonly TriggerOrder[]): NewEvent[] =>
    orders.flatMap((order) => newestKind(kinds, order.kind)?.orderEvent?.(order) ?? [])

  const taskOf = (order: TriggerOrder, cancelled: readonly TriggerOrder[], price: string) => {
    const { id, user_id: userId, input, attempts } = order
    const kind = kindOf(order)
    const taskId = uuidv7(clock.now(), random)
    return {
      id: taskId,
      userId,
      kind,
      input,
      admission: {
        data: { trigger_order_id: id, trigger_price: price },
        first: Object.keys(kind.steps)[0]!,
        ...(kind.spendOf && { spend: kind.spendOf(userId, input) }),
      },
      key: {
        // An order that is armed again after a task that executed nothing has a further task.
        key: internalKey('trigger', attempts === 1 ? id : `${id}:${attempts}`),
        operation: `trigger:${order.kind}`,
        hash: bodyHash(order.kind, input),
      },
      events: eventsOf([
        { ...order, task_id: taskId },
        ...cancelled.filter((each) => each.cancelled_by === id),
      ]),
    } satisfies Omit<NewTask, 'leased'>
  }

  /** Inserts the tasks of orders that were fired in this transaction, and returns their number. */
  const createTasks = async (tx: Tx, changed: readonly TriggerOrder[], price: string): Promise<number> => {
    const fired = changed.filter(({ status }) => status === 'fired')
    if (fired.length === 0) return 0
    const cancelled = changed.filter(({ status }) => status === 'cancelled')
    const tasks = fired.map((order) => taskOf(order, cancelled, price))
    await settleAll([
      query(
        tx,
        `update trigger_order t set task_id = f.task_id from unnest($1::uuid[], $2::uuid[]) f (id, task_id)
           where t.id = f.id`,
        [fired.map(({ id }) => id), tasks.map(({ id }) => id)],
      ),
      acceptance.enqueueAll(tx, tasks),
    ])
    return fired.length
  }

  /** An order that fails to fire stays armed and does not block the other orders of its market. */
  const fireInSavepoint = async (
    tx: Tx,
    { id }: CrossedOrder,
    price: string,
  ): Promise<number | 'blocked'> => {
    await query(tx, 'savepoint trigger_order')
    try {
      const changed = await query<TriggerOrder>(tx, 'select * from trigger_fire($1, $2)', [[id], clock.now()])
      const fired = await createTasks(tx, changed, price)
      await query(tx, 'release savepoint trigger_order')
      return fired
    } catch (error) {
      if (isDatabaseUnavailable(error) || isConflict(error)) throw error
      await query(tx, 'rollback to savepoint trigger_order')
      if (isLockTimeout(error)) return 'blocked'
      log.error({ error, order: id }, 'price trigger failed to fire')
      return 0
    }
  }

  /** Returns the number of orders that fired, and the users whose rows are locked elsewhere. */
  const fireSingly = async (tx: Tx, { market, price, quoteKey, only, except }: CrossedFilter) => {
    const crossed = await query<CrossedOrder>(
      tx,
      'select * from trigger_crossed($1, $2, $3, $4, $5, $6, $7)',
      [market, quoteKey, price, clock.now(), only, except, batchMax],
    )
    const blocked = new Set<string>()
    let count = 0
    // Transactions lock the event logs of users in one order, which prevents deadlocks.
    crossed.sort((one, other) => one.user_id.localeCompare(other.user_id))
    for (const order of crossed) {
      if (blocked.has(order.user_id)) continue
      const fired = await fireInSavepoint(tx, order, price)
      if (fired === 'blocked') blocked.add(order.user_id)
      else count += fired
    }
    return { count, blocked }
  }

  /** Users whose orders are fired with patience, beside the others of their markets. */
  const waiting = new Set<string>()
  const firePatiently = async (crossing: Crossing, userId: string): Promise<void> => {
    waiting.add(userId)
    try {
      const filter = { ...crossing, only: [userId], except: [] }
      const { count } = await transactions.run((tx) => fireSingly(tx, filter))
      if (count > 0) notifier.notify([readyTopic])
    } catch (error) {
      const { market } = crossing
      log.warn({ error, market }, 'price triggers of a blocked user not fired: they stay armed')
    } finally {
      waiting.delete(userId)
    }
  }

  /** Three round trips: the orders fire, their tasks are inserted, and the commit. */
  const fireTogether = ({ market, price, quoteKey }: Crossing, { epoch }: MarketLease): Promise<number> =>
    transactions.pipelined(
      (tx) =>
        query<TriggerOrder>(tx, 'select * from trigger_fire_crossed($1, $2, $3, $4, $5, $6, $7, $8, $9)', [
          market,
          instanceId,
          epoch,
          quoteKey,
          price,
          clock.now(),
          [...waiting],
          batchMax,
          batchLockWaitMs,
        ]),
      (tx, changed) => createTasks(tx, changed, price),
    )

  const fireEach = (crossing: Crossing, { market, epoch }: MarketLease) =>
    transactions.run(async (tx) => {
      const current = await query(
        tx,
        'select market from market_lease where market = $1 and owner = $2 and epoch = $3 for no key update',
        [market, instanceId, epoch],
      )
      if (current.length === 0) return { count: 0, blocked: new Set<string>() }
      await query(tx, 'select wait_for_locks($1)', [batchLockWaitMs])
      return fireSingly(tx, { ...crossing, only: null, except: [...waiting] })
    })

  return {
    async lease(markets) {
      if (markets.length === 0) return []
      return query<MarketLease>(
        transactions.pool,
        `insert into market_lease as w (market, owner, epoch, lease_until)
           select m, $2, 1, clock_timestamp() + make_interval(secs => $3) from unnest($1::text[]) m order by m
         on conflict (market) do update set owner = $2, lease_until = excluded.lease_until,
             epoch = w.epoch + (case when w.owner = $2 then 0 else 1 end)
           where w.owner = $2 or w.owner is null or w.lease_until < clock_timestamp()
         returning market, epoch`,
        [markets, instanceId, leaseMs / 1000],
      )
    },

    async fireTriggers(lease, price, quoteKey = null) {
      const { market } = lease
      const crossing = { market, price, quoteKey }
      const [probe] = await query<{ crossed: boolean }>(
        transactions.pool,
        quoteKey === null ? isCrossedByPrice : isCrossedByQuote,
        [market, price, ...(quoteKey === null ? [] : [quoteKey])],
      )
      if (!probe?.crossed) return 0
      const { count, blocked } = await fireTogether(crossing, lease).then(
        (fired) => ({ count: fired, blocked: [] }),
        (error: unknown) => {
          if (isDatabaseUnavailable(error) || isConflict(error)) throw error
          // One of them is the cause: each by itself fires or not.
          return fireEach(crossing, lease)
        },
      )
      for (const userId of blocked) if (waiting.size < blockedUsersMax) void firePatiently(crossing, userId)
      if (count > 0) notifier.notify([readyTopic])
      return count
    },

    expire: () =>
      transactions.run(async (tx) => {
        await query(tx, 'select wait_for_locks($1)', [batchLockWaitMs])
        const now = clock.now()
        const expired = await query<TriggerOrder>(
          tx,
          `update trigger_order set status = 'expired', updated_at = $1 where id in
             (select id from trigger_order where expires_at <= $1 and status in ('waiting', 'armed')
              order by expires_at limit ${batchMax} for update skip locked) returning *`,
          [now],
        )
        const userIds = [...new Set(expired.map(({ user_id: userId }) => userId))].sort()
        for (const userId of userIds) {
          const events = eventsOf(expired.filter((each) => each.user_id === userId))
          if (events.length === 0) continue
          await query(tx, 'select user_event_append($1, null, $2::jsonb, $3)', [
            userId,
            jsonText(events),
            now,
          ])
        }
        return expired.length
      }),
  }
}
