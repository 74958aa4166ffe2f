import type { Engine } from '#durable/engine.ts'
import type { Transactions } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { PriceRange } from '#kernel/task/trigger-order.ts'
import { query } from '#store/query.ts'
import { isConflict } from '#store/serialization-conflict.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { createOrderExpiry } from './expire-orders.ts'
import {
  type Crossing,
  type Fired,
  fireEach,
  fireForUser,
  fireTogether,
  type MarketLease,
} from './fire-orders.ts'
import { createOrderTasks } from './fired-order-tasks.ts'

type PriceTriggerDeps = {
  transactions: Transactions
  taskEngine: Pick<
    Engine,
    'kindOf' | 'enqueueAll' | 'appendEvents' | 'announceQueued' | 'instanceId' | 'holds'
  >
  clock: Clock
  random: Random
  log: Log
  leaseMs: number
}

export type { MarketLease } from './fire-orders.ts'
export type PriceTriggers = {
  /** Leases markets, so that one instance watches each; the epoch is the fencing token against a stale instance. */
  lease(markets: readonly string[]): Promise<MarketLease[]>
  /** Fires at most one batch of the armed orders that the price crossed, and returns their number. */
  fireTriggers(lease: MarketLease, price: string | PriceRange, quoteKey?: string | null): Promise<number>
  /** Ends at most one batch of the orders whose time has passed, and returns their number. */
  expire(): Promise<number>
}

/** The most users whose orders wait for locked rows, each on a connection; others wait for the next price. */
const blockedUsersMax = 4

/**
 * Compares the price with the nearest trigger of each direction, which is the end of an index range. For a condition on
 * the price itself, the planner expects many matching rows and chooses a slower plan.
 */
const isCrossedSql = (quoteCondition: string): string => {
  const armed = `from trigger_order where market = $1 and status = 'armed' and ${quoteCondition}`
  return `select coalesce((select max(trigger_price) ${armed} and direction = 'lte') >= $2::numeric, false)
    or coalesce((select min(trigger_price) ${armed} and direction = 'gte') <= $3::numeric, false) as hit`
}
const isCrossedByPrice = isCrossedSql('quote_key is null')
const isCrossedByQuote = isCrossedSql('quote_key = $4')

/**
 * Fires orders, inserts their tasks and cancels their OCO siblings in one transaction, so each order fires once.
 * A row of a user that is locked elsewhere delays only the orders of that user.
 */
export function createPriceTriggers(deps: PriceTriggerDeps): PriceTriggers {
  const { transactions, taskEngine, clock, random, log, leaseMs } = deps
  const { instanceId, holds, announceQueued, appendEvents } = taskEngine
  const tasks = createOrderTasks({ ...taskEngine, clock, random })
  const fireDeps = { transactions, tasks, clock, log, instanceId }
  const expire = createOrderExpiry({ ...fireDeps, appendEvents })

  /** Users whose orders wait for locks while the other orders of their markets fire. */
  const waiting = new Set<string>()
  const notifyOf = (count: number) => {
    if (count > 0) announceQueued()
  }
  const fireBlocked = (crossing: Crossing, userId: string): void => {
    waiting.add(userId)
    fireForUser(fireDeps, crossing, userId)
      .then(({ count }) => notifyOf(count))
      .catch((error: unknown) => {
        const { market } = crossing
        log.warn({ error, market }, 'price triggers of a blocked user not fired: they stay armed')
      })
      .finally(() => waiting.delete(userId))
  }
  const fire = async (crossing: Crossing, lease: MarketLease): Promise<Fired> => {
    const except = [...waiting]
    try {
      return { count: await fireTogether(fireDeps, crossing, lease, except), blocked: new Set() }
    } catch (error) {
      if (isDatabaseUnavailable(error) || isConflict(error)) throw error
      // One order made the transaction fail, so each order is fired on its own.
      return fireEach(fireDeps, crossing, lease, except)
    }
  }

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

    async fireTriggers(lease, given, quoteKey = null) {
      const { market } = lease
      // During a hold of money, an order that the database shows as armed may already have fired.
      if (holds.find()) return 0
      const price = typeof given === 'string' ? { low: given, high: given } : given
      const ofQuote = quoteKey === null ? [] : [quoteKey]
      const [probe] = await query<{ hit: boolean }>(
        transactions.pool,
        quoteKey === null ? isCrossedByPrice : isCrossedByQuote,
        [market, price.high, price.low, ...ofQuote],
      )
      if (!probe?.hit) return 0
      const crossing = { market, price, quoteKey }
      const { count, blocked } = await fire(crossing, lease)
      for (const userId of blocked) if (waiting.size < blockedUsersMax) fireBlocked(crossing, userId)
      notifyOf(count)
      return count
    },

    expire: async () => (holds.find() ? 0 : expire()),
  }
}
