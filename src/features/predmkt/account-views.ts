import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { PredictionVenue, VenueCredentials } from '#kernel/money/prediction-venue.ts'
import type { OutcomeOrder } from '#kernel/money/prediction-views.ts'
import { builder, fetchOne, type Queryable } from '#store/query.ts'
import type { SetupStatusView } from './account-contract.ts'
import type { ReadBudget } from './read-budget.ts'

/**
 * What a user is shown of the own account: each reading costs the venue or the chain several requests, so it is kept for
 * seconds and bounded per user. An act of the user adds an event, after which nothing older is shown.
 */

const viewMs = 2_000
const keysMs = 10_000
const ordersMax = 20_000
const statusesMax = 1_000
const keysMax = 10_000
/** The venue lists so many orders per request. */
const ordersPerRequest = 100

type AccountViewDeps = {
  userSeq: (userId: string) => Promise<bigint>
  venue: Pick<PredictionVenue, 'openOrders' | 'keys'>
  budget: ReadBudget
  nowMs?: () => number
}
export type AccountViews = {
  openOrders(userId: string, credentials: VenueCredentials): Promise<OutcomeOrder[]>
  status(userId: string, load: () => Promise<SetupStatusView>): Promise<SetupStatusView>
  /** The keys that the venue knows of an owner. */
  keys(credentials: VenueCredentials): Promise<string[]>
}

export function createAccountViews({
  userSeq,
  venue,
  budget,
  nowMs = monotonicMs,
}: AccountViewDeps): AccountViews {
  const orders = createTtlCache<OutcomeOrder[]>({
    ttlMs: viewMs,
    entriesMax: ordersMax,
    sizeOf: (listed) => 1 + listed.length,
    nowMs,
  })
  const statuses = createTtlCache<SetupStatusView>({ ttlMs: viewMs, entriesMax: statusesMax, nowMs })
  const keys = createTtlCache<string[]>({ ttlMs: keysMs, entriesMax: keysMax, nowMs })
  const keyOf = async (userId: string): Promise<string> => `${userId}:${await userSeq(userId)}`
  return {
    async openOrders(userId, credentials) {
      const key = await keyOf(userId)
      return orders.get(key, async () => {
        budget.take(userId, 'account')
        const listed = await budget.send('account', () => venue.openOrders({}, credentials))
        const further = Math.floor(listed.length / ordersPerRequest)
        if (further > 0) budget.add(userId, 'account', further)
        return listed
      })
    },
    async status(userId, load) {
      const key = await keyOf(userId)
      return statuses.get(key, async () => {
        budget.take(userId, 'account')
        return load()
      })
    },
    keys: (credentials) =>
      keys.get(credentials.key, () => budget.send('account', () => venue.keys(credentials))),
  }
}

/** Reads how many events the user has. */
export const createUserSeq =
  (db: Queryable) =>
  async (userId: string): Promise<bigint> => {
    const row = await fetchOne(
      db,
      builder.selectFrom('user_event_seq').select('seq').where('user_id', '=', userId),
    )
    return BigInt(row?.seq ?? 0)
  }
