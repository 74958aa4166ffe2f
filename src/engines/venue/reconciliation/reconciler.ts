import * as store from '#engines/venue/records/account-store.ts'
import { createIngest } from '#engines/venue/records/ingest.ts'
import { later } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Fill, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { OrderEvent, UserEvent, VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import {
  createAccountQueue,
  createAccountStreams,
  factsFrom,
  postponeAfterFailure,
  type UserFact,
} from './account-streams.ts'
import { type ApplyDeps, applyResult, freezeAccount } from './apply-result.ts'
import { createBatcher } from './batcher.ts'
import { createAccountComparer } from './compare-account.ts'
import { createOrderClosures } from './order-closures.ts'

/** Looks after every account that trades: one instance each, often where something happens and rarely where not. */

export type Intervals = {
  tickMs: number
  /** A difference has to be the same for so long before it counts: longer than any read at the venue lags. */
  settleMs: number
  /** Between two looks at an account where nothing is known to happen, and at one that trades. */
  idleMs: number
  tradingMs: number
  /** So long after its last order an account counts as trading. */
  activeMs: number
  leaseMs: number
}
export const defaultIntervals: Intervals = {
  tickMs: 1_000,
  settleMs: 10_000,
  idleMs: 300_000,
  tradingMs: 15_000,
  activeMs: 600_000,
  leaseMs: 10_000,
}

export type ReconcilerDeps = Omit<ApplyDeps, 'settleMs' | 'nextAfter' | 'onFrozen'> & {
  venue: Hyperliquid
  streams: Pick<VenueStreams, 'follow' | 'onOrders' | 'onFills'>
  instanceId: string
  random: Random
  intervals?: Intervals
}

const concurrencyMax = 4
const batchMax = 20
const registerEveryTicks = 3
/** By which the clocks of two instances may differ. */
const clockToleranceMs = 10_000
const waitingMax = 1_000
const batchLimits = { ms: 100, sizeMax: 2_000 }
const ordersKey = 'orders'
const usersMax = 20_000
/** How many times as often an account that trades without a stream is checked as one at rest. */
const unfollowedTimes = 5

/** What happens to one account, in its line. */
function createAccountChecks(deps: ReconcilerDeps, intervals: Intervals) {
  const { db, transact, venue, streams, events, clock, random, log } = deps
  const counts = { comparisons: 0, faults: 0, mismatches: 0, skipped: 0 }
  const queue = createAccountQueue(log, () => {
    counts.faults += 1
  })
  const skipped = ({ list, symbol }: { list: string; symbol: string }) => {
    counts.skipped += 1
    log.debug({ list, symbol }, 'a record of a market that is not listed is left out')
  }
  const ingest = createIngest({ db, transact, venue, events, skipped })
  const { compare, importFills } = createAccountComparer({ db, transact, venue, ingest })
  const orders = createOrderClosures({ db, transact, venue, events, clock })
  const lease = { owner: deps.instanceId, leaseSeconds: intervals.leaseMs / 1_000 }
  const accountStreams = createAccountStreams({
    db,
    streams,
    clock,
    lease,
    activeMs: intervals.activeMs,
    onEvent,
  })
  const applyDeps: ApplyDeps = {
    ...deps,
    settleMs: intervals.settleMs,
    onFrozen: () => {
      counts.mismatches += 1
    },
    nextAfter(account, now) {
      const alone = accountStreams.isActive(account) && !accountStreams.has(account.user_id)
      const ms = alone ? intervals.idleMs / unfollowedTimes : intervals.idleMs
      return later(now, ms * (0.8 + 0.4 * random.fraction()))
    },
  }

  const checkAccount = (userId: string, thorough = false) =>
    queue.run(userId, async () => {
      const account = await store.findAccount(db, userId)
      if (!account) return
      counts.comparisons += 1
      try {
        if (account.state === 'frozen') {
          await importFills(account)
          await store.recheckAt(db, account, applyDeps.nextAfter(account, clock.now()))
        } else await applyResult(applyDeps, account, await compare(account, { thorough }))
        await orders.poll(account)
      } catch (error) {
        await postponeAfterFailure(db, account, clock.now(), error)
        throw error
      }
    })

  const userBatches = createBatcher<UserFact>(batchLimits, (userId, facts) => {
    // What is left out here is found missing by the next look.
    if (queue.waiting(userId) >= waitingMax) return
    void queue.run(userId, async () => {
      const account = await store.findAccount(db, userId)
      if (!account) return
      const foreign = await ingest(account, factsFrom(facts))
      if (foreign?.isCertain) await freezeAccount(applyDeps, account, foreign)
      else if (foreign) await store.recheckAt(db, account, clock.now())
    })
  })
  const orderBatches = createBatcher<OrderEvent>(batchLimits, (name, update) => {
    if (queue.waiting(name) < waitingMax) void queue.run(name, () => orders.onStreamed(update))
  })

  /** The stream brings facts; whether they are all of them, only a look can tell. */
  function onEvent(userId: string, update: UserEvent) {
    if (update.type === 'gap') void checkAccount(userId, true)
    else userBatches.add(userId, [update])
  }

  const usersByAccount = new Map<string, string>()
  /** Fills of an account without a lasting stream spare its next look the list. */
  const onUserFills = async ({ user, fills }: { user: string; fills: Fill[] }) => {
    const userId = usersByAccount.get(user) ?? (await store.userOfAccount(db, user))
    if (userId !== undefined && usersByAccount.size < usersMax) usersByAccount.set(user, userId)
    if (userId !== undefined) userBatches.add(userId, [{ type: 'fills', fills }])
  }

  const listen = () => {
    const parts = new DisposableStack()
    parts.use(streams.onOrders((update) => orderBatches.add(ordersKey, update)))
    parts.use(
      streams.onFills((update) => {
        onUserFills(update).catch((error: unknown) => log.debug({ error }, 'streamed fills were not stored'))
      }),
    )
    return parts
  }
  const drained = () => {
    userBatches.flush()
    orderBatches.flush()
    return queue.drained()
  }

  return { checkAccount, listen, accountStreams, lease, counts, drained }
}

export function reconciler(deps: ReconcilerDeps) {
  const { db, clock, log } = deps
  const intervals = deps.intervals ?? defaultIntervals
  const { checkAccount, listen, accountStreams, lease, counts, drained } = createAccountChecks(
    deps,
    intervals,
  )
  let ticks = 0
  let scheduledAt = clock.now()
  let stopped = false

  const tick = async (): Promise<void> => {
    const now = clock.now()
    if (ticks++ % registerEveryTicks === 0) await store.register(db, now)
    const pauseSeconds = intervals.tradingMs / 1_000
    await store.scheduleActive(db, { since: later(scheduledAt, -clockToleranceMs), now, pauseSeconds })
    scheduledAt = now
    await accountStreams.renew()
    const waiting = await store.claimDue(db, { ...lease, now, limit: batchMax })
    const work = async () => {
      for (let account = waiting.shift(); account && !stopped; account = waiting.shift()) {
        const isFollowed = accountStreams.acquire(account)
        await checkAccount(account.user_id)
        if (!isFollowed) await store.release(db, [account.user_id], lease.owner)
      }
    }
    await Promise.all(Array.from({ length: Math.min(concurrencyMax, waiting.length) }, work))
  }

  return {
    counts: () => ({ ...counts, followed: accountStreams.size() }),
    start(): AsyncDisposable {
      const listening = listen()
      let running: Promise<void> | undefined
      const timer = setInterval(() => {
        running ??= tick()
          .catch((error: unknown) =>
            log.warn({ error }, 'accounts at the venue could not be looked at; the next round tries again'),
          )
          .finally(() => {
            running = undefined
          })
      }, intervals.tickMs)
      return {
        async [Symbol.asyncDispose]() {
          stopped = true
          clearInterval(timer)
          listening[Symbol.dispose]()
          await running
          await accountStreams.close()
          await drained()
        },
      }
    },
  }
}
export type Reconciler = ReturnType<typeof reconciler>
