import type { Transactions } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { PriceRange, TriggerOrder } from '#kernel/task/trigger-order.ts'
import { query } from '#store/query.ts'
import { isConflict } from '#store/serialization-conflict.ts'
import { batchLockWaitMs, isLockTimeout } from '#store/timeouts.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import type { OrderTasks } from './fired-order-tasks.ts'

/** Fires the orders that a price crossed: all in one transaction, or each on its own if one of them cannot fire. */

export type MarketLease = { market: string; epoch: number }
/** A price that fires orders of a market: those of the quote `quoteKey`, or, if null, those without a quote. */
export type Crossing = { market: string; price: PriceRange; quoteKey: string | null }
/** The number of orders that fired, and the users whose rows are locked elsewhere. */
export type Fired = { count: number; blocked: ReadonlySet<string> }
export type FireDeps = {
  transactions: Transactions
  tasks: OrderTasks
  clock: Clock
  log: Log
  instanceId: string
}
/** The users whose orders fire: those in `only`, or all if that is null, without those in `except`. */
type Users = { only: string[] | null; except: string[] }
type CrossedOrder = Pick<TriggerOrder, 'id' | 'user_id'>

export const fireBatchMax = 100

/** Fires crossed orders in one transaction of three round trips: fire the orders, insert their tasks, commit. */
export const fireTogether = (
  { transactions, tasks, clock, instanceId }: FireDeps,
  { market, price, quoteKey }: Crossing,
  { epoch }: MarketLease,
  except: string[],
): Promise<number> =>
  transactions.pipelined(
    (tx) =>
      query<TriggerOrder>(tx, 'select * from trigger_fire_crossed($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)', [
        market,
        instanceId,
        epoch,
        quoteKey,
        price.high,
        price.low,
        clock.now(),
        except,
        fireBatchMax,
        batchLockWaitMs,
      ]),
    (tx, changed) => tasks.create(tx, changed, price),
  )

export const fireEach = (
  deps: FireDeps,
  crossing: Crossing,
  { market, epoch }: MarketLease,
  except: string[],
): Promise<Fired> =>
  deps.transactions.run(async (tx) => {
    const current = await query(
      tx,
      'select market from market_lease where market = $1 and owner = $2 and epoch = $3 for no key update',
      [market, deps.instanceId, epoch],
    )
    if (current.length === 0) return { count: 0, blocked: new Set() }
    await query(tx, 'select wait_for_locks($1)', [batchLockWaitMs])
    return fireSingly(deps, tx, crossing, { only: null, except })
  })

/** Fires the crossed orders of one user, and waits for the user's rows as long as a statement may take. */
export const fireForUser = (deps: FireDeps, crossing: Crossing, userId: string): Promise<Fired> =>
  deps.transactions.run((tx) => fireSingly(deps, tx, crossing, { only: [userId], except: [] }))

async function fireSingly(
  deps: FireDeps,
  tx: Tx,
  { market, price, quoteKey }: Crossing,
  { only, except }: Users,
): Promise<Fired> {
  const hits = await query<CrossedOrder>(
    tx,
    'select * from trigger_crossed($1, $2, $3, $4, $5, $6, $7, $8)',
    [market, quoteKey, price.high, price.low, deps.clock.now(), only, except, fireBatchMax],
  )
  const blocked = new Set<string>()
  let count = 0
  // Transactions lock the event logs of users in one order, which prevents deadlocks.
  hits.sort((one, other) => one.user_id.localeCompare(other.user_id))
  for (const order of hits) {
    if (blocked.has(order.user_id)) continue
    const fired = await fireInSavepoint(deps, tx, order, price)
    if (fired === 'blocked') blocked.add(order.user_id)
    else if (fired !== 'failed') count += fired
  }
  return { count, blocked }
}

const fireInSavepoint = (
  { tasks, clock, log }: FireDeps,
  tx: Tx,
  { id }: CrossedOrder,
  price: PriceRange,
): Promise<number | 'blocked' | 'failed'> =>
  inOrderSavepoint(tx, { id, log, failure: 'price trigger failed to fire' }, async () => {
    const changed = await query<TriggerOrder>(tx, 'select * from trigger_fire($1, $2)', [[id], clock.now()])
    return tasks.create(tx, changed, price)
  })

type OrderAttempt = { id: string; log: Log; failure: string }

/** Changes one order within a transaction; if the change fails, only the change is rolled back. */
export async function inOrderSavepoint<T>(
  tx: Tx,
  { id, log, failure }: OrderAttempt,
  change: () => Promise<T>,
): Promise<T | 'blocked' | 'failed'> {
  await query(tx, 'savepoint trigger_order')
  try {
    const changed = await change()
    await query(tx, 'release savepoint trigger_order')
    return changed
  } catch (error) {
    if (isDatabaseUnavailable(error) || isConflict(error)) throw error
    await query(tx, 'rollback to savepoint trigger_order')
    if (isLockTimeout(error)) return 'blocked'
    log.error({ error, order: id }, failure)
    return 'failed'
  }
}
