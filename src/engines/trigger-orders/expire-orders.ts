import type { Engine } from '#durable/engine.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { TriggerOrder } from '#kernel/task/trigger-order.ts'
import { query } from '#store/query.ts'
import { isConflict } from '#store/serialization-conflict.ts'
import { batchLockWaitMs } from '#store/timeouts.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { type FireDeps, fireBatchMax, inOrderSavepoint } from './fire-orders.ts'

/** Ends orders whose time has passed: all in one transaction, or each on its own if one of them cannot end. */

type ExpiryDeps = Pick<FireDeps, 'transactions' | 'tasks' | 'clock' | 'log'> & Pick<Engine, 'appendEvents'>
type Left = { users: string[]; orders: string[] }
type DueOrder = Pick<TriggerOrder, 'id' | 'user_id'>

/** An order that could not expire is left out for this long, so that it does not delay other orders. */
const blockedMs = 2_000
const failedMs = 60_000
const leftMax = 10_000

const dueSql = `select id, user_id from trigger_order where expires_at <= $1 and status in ('waiting', 'armed')
  and user_id <> all($2::uuid[]) and id <> all($3::uuid[]) order by expires_at limit ${fireBatchMax} for update skip locked`

export function createOrderExpiry(deps: ExpiryDeps): () => Promise<number> {
  const { transactions, clock } = deps
  const users = new Map<string, number>()
  const orders = new Map<string, number>()
  const leftNow = (): Left => {
    const nowMs = monotonicMs()
    for (const left of [users, orders])
      for (const [id, untilMs] of left) if (untilMs <= nowMs || left.size > leftMax) left.delete(id)
    return { users: [...users.keys()], orders: [...orders.keys()] }
  }
  const due = (tx: Tx, left: Left) => query<DueOrder>(tx, dueSql, [clock.now(), left.users, left.orders])

  const together = (left: Left): Promise<number> =>
    transactions.run(async (tx) => {
      await query(tx, 'select wait_for_locks($1)', [batchLockWaitMs])
      const found = await due(tx, left)
      // Transactions lock the event logs of users in one order, which prevents deadlocks.
      for (const userId of [...new Set(found.map(({ user_id }) => user_id))].sort())
        await expireOf(deps, tx, userId, found)
      return found.length
    })

  const singly = (left: Left): Promise<number> =>
    transactions.run(async (tx) => {
      await query(tx, 'select wait_for_locks($1)', [batchLockWaitMs])
      const found = (await due(tx, left)).sort((one, other) => one.user_id.localeCompare(other.user_id))
      let count = 0
      for (const order of found) {
        const { id, user_id: userId } = order
        if (users.has(userId)) continue
        const attempt = { id, log: deps.log, failure: 'order not expired; it is tried again' }
        const ended = await inOrderSavepoint(tx, attempt, () => expireOf(deps, tx, userId, [order]))
        if (ended === 'blocked') users.set(userId, monotonicMs() + blockedMs)
        else if (ended === 'failed') orders.set(id, monotonicMs() + failedMs)
        else count += 1
      }
      return count
    })

  return async () => {
    const left = leftNow()
    try {
      return await together(left)
    } catch (error) {
      if (isDatabaseUnavailable(error) || isConflict(error)) throw error
      return singly(left)
    }
  }
}

async function expireOf(
  { tasks, clock, appendEvents }: ExpiryDeps,
  tx: Tx,
  userId: string,
  due: readonly DueOrder[],
): Promise<void> {
  const now = clock.now()
  const ids = due.filter(({ user_id }) => user_id === userId).map(({ id }) => id)
  const expired = await query<TriggerOrder>(
    tx,
    `update trigger_order set status = 'expired', updated_at = $1 where id = any($2::uuid[]) returning *`,
    [now, ids],
  )
  await appendEvents(tx, userId, tasks.eventsOf(expired), now)
}
