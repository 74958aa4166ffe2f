import { later } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Fill, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { OrderNews, UserNews, VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import { looking } from './account-look.ts'
import * as store from './account-store.ts'
import { freezeAccount, settleLook, type VerdictNeeds } from './account-verdict.ts'
import { bundles } from './bundles.ts'
import { factsOf, following, lines, putOff, type Told } from './following.ts'
import { ingesting } from './ingest.ts'
import { orderEnds } from './order-ends.ts'

/** Looks after every account that trades: one instance each, often where something happens and rarely where not. */

export type Pace = {
  tickMs: number
  /** A difference has to be the same for so long before it counts: longer than any read at the venue lags. */
  settleMs: number
  /** Between two looks at an account where nothing is known to happen, and at one that trades. */
  restMs: number
  tradingMs: number
  /** So long after its last order an account counts as trading. */
  activeMs: number
  leaseMs: number
}
export const calmPace: Pace = {
  tickMs: 1_000,
  settleMs: 10_000,
  restMs: 300_000,
  tradingMs: 15_000,
  activeMs: 600_000,
  leaseMs: 10_000,
}

export type ReconcilerNeeds = Omit<VerdictNeeds, 'settleMs' | 'nextAfter' | 'drifted'> & {
  venue: Hyperliquid
  streams: Pick<VenueStreams, 'follow' | 'onOrders' | 'onFills'>
  instanceId: string
  random: Random
  pace?: Pace
}

const atOnce = 4
const batchMost = 20
const enrolEveryTicks = 3
/** By which the clocks of two instances may differ. */
const skewMs = 10_000
const waitingMost = 1_000
const moment = { ms: 100, most: 2_000 }
const ordersLine = 'orders'
const usersMax = 20_000
/** How many times as often an account that trades without a stream is checked as one at rest. */
const unfollowedTimes = 5

/** What happens to one account, in its line. */
function visits(needs: ReconcilerNeeds, pace: Pace) {
  const { on, transact, venue, streams, events, clock, random, log } = needs
  const counts = { looks: 0, faults: 0, drifts: 0, skipped: 0 }
  const line = lines(log, () => {
    counts.faults += 1
  })
  const skipped = ({ list, symbol }: { list: string; symbol: string }) => {
    counts.skipped += 1
    log.debug({ list, symbol }, 'a record of a market that is not listed is left out')
  }
  const ingest = ingesting({ on, transact, venue, events, skipped })
  const { look, follow } = looking({ on, transact, venue, ingest })
  const orders = orderEnds({ on, transact, venue, events, clock })
  const lease = { owner: needs.instanceId, leaseSeconds: pace.leaseMs / 1_000 }
  const streamed = following({ on, streams, clock, lease, activeMs: pace.activeMs, hear })
  const verdict: VerdictNeeds = {
    ...needs,
    settleMs: pace.settleMs,
    drifted: () => {
      counts.drifts += 1
    },
    nextAfter(account, now) {
      const alone = streamed.isActive(account) && !streamed.has(account.user_id)
      const ms = alone ? pace.restMs / unfollowedTimes : pace.restMs
      return later(now, ms * (0.8 + 0.4 * random.fraction()))
    },
  }

  const visit = (userId: string, thorough = false) =>
    line.run(userId, async () => {
      const account = await store.accountFor(on, userId)
      if (!account) return
      counts.looks += 1
      try {
        if (account.state === 'frozen') {
          await follow(account)
          await store.lookAgainAt(on, account, verdict.nextAfter(account, clock.now()))
        } else await settleLook(verdict, account, await look(account, { thorough }))
        await orders.ask(account)
      } catch (error) {
        await putOff(on, account, clock.now(), error)
        throw error
      }
    })

  const heard = bundles<Told>(moment, (userId, told) => {
    // What is left out here is found missing by the next look.
    if (line.waiting(userId) >= waitingMost) return
    void line.run(userId, async () => {
      const account = await store.accountFor(on, userId)
      if (!account) return
      const foreign = await ingest(account, factsOf(told))
      if (foreign?.isCertain) await freezeAccount(verdict, account, foreign)
      else if (foreign) await store.lookAgainAt(on, account, clock.now())
    })
  })
  const heardOrders = bundles<OrderNews>(moment, (name, news) => {
    if (line.waiting(name) < waitingMost) void line.run(name, () => orders.heard(news))
  })

  /** The stream brings facts; whether they are all of them, only a look can tell. */
  function hear(userId: string, news: UserNews) {
    if (news.is === 'gap') void visit(userId, true)
    else heard.add(userId, [news])
  }

  const usersByAccount = new Map<string, string>()
  /** Fills of an account without a lasting stream spare its next look the list. */
  const hearFills = async ({ user, fills }: { user: string; fills: Fill[] }) => {
    const userId = usersByAccount.get(user) ?? (await store.userOfAccount(on, user))
    if (userId !== undefined && usersByAccount.size < usersMax) usersByAccount.set(user, userId)
    if (userId !== undefined) heard.add(userId, [{ is: 'fills', fills }])
  }

  const listen = () => {
    const parts = new DisposableStack()
    parts.use(streams.onOrders((news) => heardOrders.add(ordersLine, news)))
    parts.use(
      streams.onFills((news) => {
        hearFills(news).catch((error: unknown) => log.debug({ error }, 'streamed fills were not stored'))
      }),
    )
    return parts
  }
  const ended = () => {
    heard.flush()
    heardOrders.flush()
    return line.ended()
  }

  return { visit, listen, streamed, lease, counts, ended }
}

export function reconciler(needs: ReconcilerNeeds) {
  const { on, clock, log } = needs
  const pace = needs.pace ?? calmPace
  const { visit, listen, streamed, lease, counts, ended } = visits(needs, pace)
  let ticks = 0
  let stirredAt = clock.now()
  let stopped = false

  const tick = async (): Promise<void> => {
    const now = clock.now()
    if (ticks++ % enrolEveryTicks === 0) await store.enrol(on, now)
    const pauseSeconds = pace.tradingMs / 1_000
    await store.stir(on, { since: later(stirredAt, -skewMs), now, pauseSeconds })
    stirredAt = now
    await streamed.renew()
    const waiting = await store.claimDue(on, { ...lease, now, limit: batchMost })
    const work = async () => {
      for (let account = waiting.shift(); account && !stopped; account = waiting.shift()) {
        const kept = streamed.take(account)
        await visit(account.user_id)
        if (!kept) await store.letGo(on, [account.user_id], lease.owner)
      }
    }
    await Promise.all(Array.from({ length: Math.min(atOnce, waiting.length) }, work))
  }

  return {
    counts: () => ({ ...counts, followed: streamed.size() }),
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
      }, pace.tickMs)
      return {
        async [Symbol.asyncDispose]() {
          stopped = true
          clearInterval(timer)
          listening[Symbol.dispose]()
          await running
          await streamed.end()
          await ended()
        },
      }
    },
  }
}
export type Reconciler = ReturnType<typeof reconciler>
