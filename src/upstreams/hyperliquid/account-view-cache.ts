import type { LRUCache } from 'lru-cache'
import { createLru } from '#kernel/async/create-lru.ts'
import { createLatch, type Latch } from '#kernel/async/latch.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Account, Hyperliquid, OpenOrder, SpotBalance } from './hyperliquid.ts'
import { parseAccount, parseBalances, parseOrders } from './parse-replies.ts'
import { budgetFault, infoWeight } from './rate-budget.ts'
import type { VenueStreams } from './stream.ts'
import type { InfoType } from './wire.ts'

/**
 * The cached account state for views. A view uses the streams, or the last reply if the account's share of the
 * view budget does not cover a new request; each value carries the time of its read.
 */

export type Viewed<T> = { value: T; atMs: number }
type Parts = {
  account: Account
  openOrders: OpenOrder[]
  spotBalances: SpotBalance[]
  agents: Awaited<ReturnType<Hyperliquid['agents']>>
  mode: string
  rateLimit: Awaited<ReturnType<Hyperliquid['rateLimit']>>
}
type Part = keyof Parts
export type PushedPart = 'account' | 'openOrders' | 'spotBalances'

export type AccountViews = {
  account(user: string): Promise<Viewed<Account>>
  openOrders(user: string): Promise<Viewed<OpenOrder[]>>
  spotBalances(user: string): Promise<Viewed<SpotBalance[]>>
  agents(user: string): Promise<Viewed<Parts['agents']>>
  mode(user: string): Promise<Viewed<string>>
  rateLimit(user: string): Promise<Viewed<Parts['rateLimit']>>
  /** Marks earlier reads as stale after an action of the gateway on the account. */
  invalidate(user: string): void
  applyPush<P extends PushedPart>(user: string, part: P, value: Parts[P]): void
}

type AccountViewDeps = {
  venue: Hyperliquid
  clock: Clock
  /** The weight of requests per minute; with 0 there is no budget, and every view sends a request. */
  perMinute: number
  /** Returns since when the account's stream has no gap, or undefined if the account is not subscribed. */
  subscribedSinceMs: (user: string) => number | undefined
  /** Reads an account without a lasting subscription by a brief one, which costs no weight. */
  brief?: VenueStreams['brief']
}

const infoTypes: Readonly<Record<Part, InfoType>> = {
  account: 'clearinghouseState',
  openOrders: 'frontendOpenOrders',
  spotBalances: 'spotClearinghouseState',
  agents: 'extraAgents',
  mode: 'userAbstraction',
  rateLimit: 'userRateLimit',
}
/** A reply that is younger than this serves further views of the account. */
const freshMs: Readonly<Record<Part, number>> = {
  account: 1_000,
  openOrders: 1_000,
  spotBalances: 1_000,
  agents: 60_000,
  mode: 300_000,
  rateLimit: 300_000,
}
/** A pushed value is current for this long, because pushes can be lost. */
const pushedFreshMs: Readonly<Record<PushedPart, number>> = {
  account: 5_000,
  openOrders: 30_000,
  spotBalances: 30_000,
}
/** How long a view waits for the push after an action; without a push, the last value is current. */
const pushWaitMs = 250
const staleMaxMs = 180_000
/** The interval of brief subscriptions for a part of an idle account. */
const briefEveryMs = 5_000
const briefMs = 1_000
const accountsMax = 10_000
/** The token bucket of an account: its burst weight, and its refill per second. */
const burstWeight = 24
const refillPerSecond = 1
/**
 * For a missing or stale value, the share of an account may go into debt up to this weight. With the burst weight, this
 * covers the first read of every part of an account, which costs 84.
 */
const debtMaxWeight = 60
/** The percentage of the budget for the views of all accounts together. */
const viewsShare = 30
const activeMs = 60_000

/** The view weight of each account; the shares shrink while many accounts are active. */
function viewShares(perMinute: number, nowMs: () => number) {
  const shares = createLru<string, { tokens: number; atMs: number }>(accountsMax)
  let active = { count: 1, atMs: 0 }

  const activeCount = (now: number): number => {
    if (now - active.atMs < 1_000 && now >= active.atMs) return active.count
    const idle = [...shares.entries()].filter(([, { atMs }]) => now - atMs > activeMs)
    for (const [account] of idle) shares.delete(account)
    active = { count: Math.max(1, shares.size), atMs: now }
    return active.count
  }
  const rate = (now: number): number =>
    Math.min(refillPerSecond, (perMinute * viewsShare) / 100 / 60 / activeCount(now))

  const shareOf = (account: string) => {
    const now = nowMs()
    const known = shares.get(account)
    const tokens = known
      ? Math.min(burstWeight, known.tokens + (Math.max(0, now - known.atMs) / 1_000) * rate(now))
      : burstWeight
    const share = { tokens, atMs: now }
    shares.set(account, share)
    return share
  }

  return {
    /**
     * Takes weight from an account's share; false if it does not suffice. With `ahead`, the share may go into debt.
     */
    take(account: string, weight: number, { ahead }: { ahead: boolean }): boolean {
      if (perMinute === 0) return true
      const share = shareOf(account)
      const minTokens = ahead ? weight - debtMaxWeight : weight
      if (share.tokens < minTokens) return false
      share.tokens -= weight
      return true
    },
    waitMs(account: string, weight: number): number {
      const { tokens } = shareOf(account)
      return Math.max(0, ((weight - debtMaxWeight - tokens) / rate(nowMs())) * 1_000)
    },
  }
}

/** `version` is that of the state when the value was pushed or requested. */
type Entry = Viewed<unknown> & { pushed: boolean; version: number }
type State = {
  entries: Map<Part, Entry>
  requests: Map<Part, { promise: Promise<Entry>; version: number }>
  /** Rises with each invalidation; values and requests of an earlier version are outdated. */
  version: number
  invalidatedMs: number
  latches: Set<Latch>
}

type ViewContext = AccountViewDeps & {
  nowMs: () => number
  shares: ReturnType<typeof viewShares>
  states: LRUCache<string, State>
}

export function createAccountViews(deps: AccountViewDeps): AccountViews {
  const venue = deps.venue.withUrgency('view')
  const nowMs = () => deps.clock.now().getTime()
  const states = createLru<string, State>(accountsMax)
  const context: ViewContext = { ...deps, nowMs, states, shares: viewShares(deps.perMinute, nowMs) }
  const view = <P extends Part>(user: string, part: P, read: () => Promise<Parts[P]>) =>
    viewPart(context, { account: user.toLowerCase(), part, read }) as Promise<Viewed<Parts[P]>>
  return {
    account: (user) => view(user, 'account', () => venue.account(user)),
    openOrders: (user) => view(user, 'openOrders', () => venue.openOrders(user)),
    spotBalances: (user) => view(user, 'spotBalances', () => venue.spotBalances(user, [])),
    agents: (user) => view(user, 'agents', () => venue.agents(user)),
    mode: (user) => view(user, 'mode', () => venue.accountMode(user)),
    rateLimit: (user) => view(user, 'rateLimit', () => venue.rateLimit(user)),
    invalidate(user) {
      const state = states.get(user.toLowerCase())
      if (!state) return
      state.version += 1
      state.invalidatedMs = nowMs()
    },
    applyPush(user, part, value) {
      const state = stateOf(states, user.toLowerCase())
      state.entries.set(part, { value, atMs: nowMs(), pushed: true, version: state.version })
      for (const latch of state.latches) latch.set()
    },
  }
}

function stateOf(states: ViewContext['states'], account: string): State {
  const known = states.get(account)
  if (known) return known
  const state: State = {
    entries: new Map(),
    requests: new Map(),
    version: 0,
    invalidatedMs: 0,
    latches: new Set(),
  }
  states.set(account, state)
  return state
}

/** A part of an account, and how it is read in full. */
type PartRead = { account: string; part: Part; read: () => Promise<unknown> }

function isPushCurrent(
  { nowMs, perMinute, subscribedSinceMs }: ViewContext,
  { account, part }: PartRead,
  { atMs, pushed }: Entry,
): boolean {
  const sinceMs = perMinute > 0 && pushed ? subscribedSinceMs(account) : undefined
  return sinceMs !== undefined && atMs >= sinceMs && nowMs() - atMs <= pushedFreshMs[part as PushedPart]
}

/**
 * Returns the pushed value of a part while it is current, and undefined otherwise. If the gateway acted after the
 * last push, the next one is awaited.
 */
async function currentPush(context: ViewContext, wanted: PartRead, state: State): Promise<Entry | undefined> {
  const { nowMs } = context
  const last = () => {
    const entry = state.entries.get(wanted.part)
    return entry && isPushCurrent(context, wanted, entry) ? entry : undefined
  }
  const { version, invalidatedMs } = state
  const found = last()
  if (!found || found.version === version) return found
  const untilMs = invalidatedMs + pushWaitMs
  using latch = createLatch()
  state.latches.add(latch)
  while (nowMs() <= untilMs && (last()?.version ?? 0) < version) {
    latch.reset()
    await latch.wait(untilMs - nowMs() + 1)
  }
  state.latches.delete(latch)
  return last()
}

function request({ nowMs }: ViewContext, { part, read }: PartRead, state: State): Promise<Entry> {
  const atMs = nowMs()
  const { version } = state
  const promise = read()
    .then((value) => {
      const entry: Entry = { value, atMs, pushed: false, version }
      const known = state.entries.get(part)
      const isNewest = !known || (known.atMs <= atMs && known.version <= version)
      if (isNewest) state.entries.set(part, entry)
      return entry
    })
    .finally(() => {
      if (state.requests.get(part)?.promise === promise) state.requests.delete(part)
    })
  state.requests.set(part, { promise, version })
  return promise
}

type BriefReads = {
  [P in PushedPart]: (brief: VenueStreams['brief'], user: string) => Promise<Parts[P] | undefined> | undefined
}
const briefReads: BriefReads = {
  account: (brief, user) =>
    brief(user, 'clearinghouseState', (message) => parseAccount(message.clearinghouseState), briefMs),
  openOrders: (brief, user) =>
    brief(user, 'openOrders', (message) => message.orders.flatMap(parseOrders), briefMs),
  spotBalances: (brief, user) =>
    brief(user, 'spotState', (message) => parseBalances(message.spotState), briefMs),
}

async function viewPart(context: ViewContext, wanted: PartRead): Promise<Entry> {
  const { nowMs, perMinute, shares, brief } = context
  const { account, part, read } = wanted
  const state = stateOf(context.states, account)
  const push = await currentPush(context, wanted, state)
  if (push) return push
  const known = state.entries.get(part)
  const isAnswerCurrent =
    known &&
    !known.pushed &&
    known.version === state.version &&
    Math.abs(nowMs() - known.atMs) <= freshMs[part]
  if (known && perMinute > 0 && isAnswerCurrent) return known
  const usable = known && nowMs() - known.atMs <= staleMaxMs ? known : undefined
  const ahead = usable === undefined || usable.version < state.version
  const weight = infoWeight(infoTypes[part])
  const canPay = () => shares.take(account, weight, { ahead })
  const noBudget = () => budgetFault(shares.waitMs(account, weight), 'view', 'account', perMinute)
  const isBrief =
    brief && perMinute > 0 && part in briefReads && context.subscribedSinceMs(account) === undefined
  if (isBrief && !ahead && usable && nowMs() - usable.atMs <= briefEveryMs) return usable
  const pending = state.requests.get(part)
  const joined = pending && pending.version === state.version ? pending.promise : undefined
  if (!joined && !isBrief && !canPay()) {
    if (usable) return usable
    throw noBudget()
  }
  const readBriefly = async () => {
    const seen = brief && (await briefReads[part as PushedPart](brief, account))
    if (seen !== undefined) return seen
    if (!canPay()) throw noBudget()
    return read()
  }
  try {
    return await (joined ?? request(context, { ...wanted, read: isBrief ? readBriefly : read }, state))
  } catch (fault) {
    if (usable && fault instanceof Fault && fault.code === 'unavailable') return usable
    throw fault
  }
}
