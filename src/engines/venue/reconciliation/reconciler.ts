import * as store from '#engines/venue/records/account-store.ts'
import { createIngest } from '#engines/venue/records/ingest.ts'
import { createBatcher } from '#kernel/async/batcher.ts'
import { createLru } from '#kernel/async/create-lru.ts'
import { repeat } from '#kernel/async/repeat.ts'
import { later } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Fill, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { OrderEvent, UserEvent, VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import { createAccountQueue, postponeAfterFailure } from './account-queue.ts'
import { createAccountStreams, factsFrom, type UserFact } from './account-streams.ts'
import { type ApplyDeps, applyResult, freezeAccount, unfreezeAccount } from './apply-result.ts'
import { createAccountComparer } from './compare-account.ts'
import { createOrderClosures } from './order-closures.ts'

/** Compares every venue account with its record: one instance per account, more often for accounts that trade. */

export type Intervals = {
  tickMs: number
  /** How long a difference has to stay the same until it counts; this exceeds the venue's read lag. */
  settleMs: number
  /** The interval between comparisons of an account without recent orders; `tradingMs` is for trading accounts. */
  idleMs: number
  tradingMs: number
  /** An account counts as trading for this long after its last order. */
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
  streams: Pick<VenueStreams, 'subscribe' | 'onOrders' | 'onFills'>
  instanceId: string
  /** Whether this instance is on duty, and polls for due accounts more often than the others. */
  isOnDuty: () => boolean
  /**
   * Whether money is on hold because the database may have lost its own orders. Until an operator has adopted these
   * orders, nothing is compared, so that none of their fills counts as foreign.
   */
  isOnHold: () => boolean
  random: Random
  intervals?: Intervals
}

const concurrencyMax = 4
const batchMax = 20
/** While no account has work, only one in this many rounds looks for due accounts. */
const idleTicks = { onDuty: 2, others: 10 }
/** The largest clock difference between two instances. */
const clockToleranceMs = 10_000
const waitingMax = 1_000
/** The limits of a batch of streamed facts; facts beyond them are dropped, and found by the next comparison. */
const batchLimits = { delayMs: 100, itemsMax: 2_000, keysMax: 1_000 }
const ordersKey = 'orders'
const usersMax = 20_000
/** A trading account without a stream is compared this many times as often as an idle account. */
const unfollowedTimes = 5

/** Runs comparisons and imports one at a time per account. */
function createAccountChecks(deps: ReconcilerDeps, intervals: Intervals) {
  const { db, transact, venue, streams, events, clock, random, log } = deps
  const counts = { comparisons: 0, faults: 0, mismatches: 0, skipped: 0 }
  const queue = createAccountQueue(log, () => {
    counts.faults += 1
  })
  const skipped = ({ list, symbol }: { list: string; symbol: string }) => {
    counts.skipped += 1
    log.debug({ list, symbol }, 'record skipped: market not listed')
  }
  const ingest = createIngest({ db, transact, venue, events, skipped })
  const { compare, importFills } = createAccountComparer({
    db,
    transact,
    venue,
    ingest,
    onUnfrozen: unfreezeAccount(deps),
  })
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

  /**
   * Users whose streamed facts were dropped during a money hold. Their balances may show no difference, so the next
   * comparison reads their fills in any case.
   */
  const missed = new Set<string>()
  const checkAccount = (userId: string, { thorough: isAsked = false }: { thorough?: boolean } = {}) =>
    queue.run(userId, async () => {
      if (deps.isOnHold()) return void missed.add(userId)
      const account = await store.findAccount(db, userId)
      if (!account) return
      const thorough = missed.delete(userId) || isAsked
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
    // The next comparison finds dropped facts.
    if (queue.pending(userId) >= waitingMax) return
    void queue.run(userId, async () => {
      if (deps.isOnHold()) return void missed.add(userId)
      const account = await store.findAccount(db, userId)
      if (!account) return
      const foreign = await ingest(account, factsFrom(facts))
      if (foreign?.isCertain) await freezeAccount(applyDeps, account, foreign)
      else if (foreign) await store.recheckAt(db, account, clock.now())
    })
  })
  const orderBatches = createBatcher<OrderEvent>(batchLimits, (name, update) => {
    if (queue.pending(name) < waitingMax) void queue.run(name, () => orders.onStreamed(update))
  })

  /** Handles an event of the stream: after a gap events may be lost, so the account is compared. */
  function onEvent(userId: string, update: UserEvent) {
    if (update.type === 'gap') void checkAccount(userId, { thorough: true })
    else userBatches.add(userId, [update])
  }

  const usersByAccount = createLru<string, string>(usersMax)
  /**
   * Imports streamed fills of an account without a subscription, so that its next comparison need not read the list of
   * fills.
   */
  const onUserFills = async ({ user, fills }: { user: string; fills: Fill[] }) => {
    const userId = usersByAccount.get(user) ?? (await store.userOfAccount(db, user))
    if (userId === undefined) return
    usersByAccount.set(user, userId)
    userBatches.add(userId, [{ type: 'fills', fills }])
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

export function createReconciler(deps: ReconcilerDeps) {
  const { db, clock, log } = deps
  const intervals = deps.intervals ?? defaultIntervals
  const { checkAccount, listen, accountStreams, lease, counts, drained } = createAccountChecks(
    deps,
    intervals,
  )
  let ticks = 0
  let scheduledAt = clock.now()
  let foundWork = true
  let stopped = false

  /** Makes due the accounts that are new or have traded, and leases the accounts that are due. */
  const claimAccounts = async (): Promise<store.VenueAccount[]> => {
    const now = clock.now()
    const since = later(scheduledAt, -clockToleranceMs)
    const work = await store.findWork(db, { owner: lease.owner, since, now })
    if (work.hasNewKeys) await store.register(db, now)
    if (work.hasTraded)
      await store.scheduleActive(db, { since, now, pauseSeconds: intervals.tradingMs / 1_000 })
    scheduledAt = now
    foundWork = Object.values(work).includes(true)
    return foundWork ? store.claimDue(db, { ...lease, now, limit: batchMax }) : []
  }

  const tick = async (): Promise<void> => {
    const idle = deps.isOnDuty() ? idleTicks.onDuty : idleTicks.others
    const isResting = !foundWork && ++ticks % idle !== 0
    await accountStreams.renew()
    if (isResting || deps.isOnHold()) return
    const waiting = await claimAccounts()
    const work = async () => {
      for (let account = waiting.shift(); account && !stopped; account = waiting.shift()) {
        const isSubscribed = accountStreams.acquire(account)
        await checkAccount(account.user_id)
        if (!isSubscribed) await store.release(db, [account.user_id], lease.owner)
      }
    }
    await Promise.all(Array.from({ length: Math.min(concurrencyMax, waiting.length) }, work))
  }

  return {
    counts: () => ({ ...counts, subscribed: accountStreams.size() }),
    start(): AsyncDisposable {
      const listening = listen()
      const ticking = repeat(tick, {
        everyMs: intervals.tickMs,
        onError: (error) => log.warn({ error }, 'venue accounts not compared: the next round retries'),
      })
      return {
        async [Symbol.asyncDispose]() {
          stopped = true
          listening[Symbol.dispose]()
          await ticking[Symbol.asyncDispose]()
          await accountStreams.close()
          await drained()
        },
      }
    },
  }
}
export type Reconciler = ReturnType<typeof createReconciler>
