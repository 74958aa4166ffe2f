import * as store from '#engines/venue/records/account-store.ts'
import type { Facts } from '#engines/venue/records/ingest.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Queryable } from '#store/query.ts'
import type { UserEvent, VenueStreams } from '#upstreams/hyperliquid/stream.ts'

/** Subscribes to the streams of trading accounts, up to the venue's limit, while their leases last. */

type Lease = { owner: string; leaseSeconds: number }
type AccountStreamDeps = {
  db: Queryable
  streams: Pick<VenueStreams, 'subscribe'>
  clock: Clock
  lease: Lease
  /** An account counts as trading for this long after its last order. */
  activeMs: number
  onEvent: (userId: string, event: UserEvent) => void
}

export function createAccountStreams({ db, streams, clock, lease, activeMs, onEvent }: AccountStreamDeps) {
  const subscriptions = new Map<string, Disposable>()
  const isActive = ({ active_at }: Pick<store.VenueAccount, 'active_at'>) =>
    clock.now().getTime() - active_at.getTime() < activeMs

  const unfollow = async (userIds: string[]) => {
    for (const userId of userIds) {
      subscriptions.get(userId)?.[Symbol.dispose]()
      subscriptions.delete(userId)
    }
    if (userIds.length > 0) await store.release(db, userIds, lease.owner)
  }

  return {
    isActive,
    has: (userId: string) => subscriptions.has(userId),
    size: () => subscriptions.size,
    acquire(account: store.VenueAccount): boolean {
      const { user_id: userId } = account
      if (subscriptions.has(userId)) return true
      const subscription = isActive(account)
        ? streams.subscribe(account.account, (event) => onEvent(userId, event))
        : undefined
      if (subscription) subscriptions.set(userId, subscription)
      return subscription !== undefined
    },
    /** Ends subscriptions of inactive accounts and of accounts whose lease was lost. */
    async renew() {
      if (subscriptions.size === 0) return
      const leased = await store.renew(db, [...subscriptions.keys()], lease)
      const active = new Set(leased.filter(isActive).map(({ user_id }) => user_id))
      await unfollow([...subscriptions.keys()].filter((userId) => !active.has(userId)))
    },
    close: () => unfollow([...subscriptions.keys()]),
  }
}

export type UserFact = Exclude<UserEvent, { type: 'gap' }>

export const factsFrom = (events: readonly UserFact[]): Facts => ({
  fills: events.flatMap((event) => (event.type === 'fills' ? event.fills : [])),
  fundings: events.flatMap((event) => (event.type === 'fundings' ? event.fundings : [])),
  updates: events.flatMap((event) => (event.type === 'ledger' ? event.updates : [])),
})
