import { ownPosition } from '#engines/venue/records/reducible-part.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { toUnits } from '#kernel/money/money.ts'
import type { Tx } from '#kernel/task/task.ts'
import { fundingUnitsOf, priceDecimals } from '#market/strategies/account.ts'
import { openRun } from '#market/strategies/strategy-run.ts'
import type { FundingRate } from '#market/trade-simulation.ts'
import { findAccount, lockAccount, type StrategyAccount, storeAccount, storeFills } from './account-store.ts'
import { type LiveCursor, leftAssets, liveCursorOf, storedCursor, withLeft } from './live-cursor.ts'
import { actOnExit, type ExitDeps } from './live-exit.ts'
import { actOnOrders } from './live-orders.ts'
import { lookMs, type ProtectionDeps, tendOrders } from './live-protection.ts'
import { isBeforeExit, marketsOfOpenTasks, spentMicros } from './live-records.ts'
import { liveState, type VenueFacts } from './live-state.ts'
import { applyLiveReading, type HourlyFunding } from './live-sync.ts'
import { readVenue, refusalBeside } from './live-venue.ts'
import type { Observe } from './market-reads.ts'
import type {
  DriverAct,
  ModeDriver,
  ModeReading,
  OrderedDecision,
  ReadAt,
  StrategyTerms,
} from './mode-driver.ts'

/**
 * Strategies that trade at the venue: their fills and positions are those of their own orders, and their orders are tasks
 * of the operations that anybody calls.
 */

export type LiveDeps = ExitDeps &
  ProtectionDeps & {
    /** Returns the rates of a time, which strategies that ask for the same share. */
    funding: Observe['funding']
    scheduleClock: Clock
    /** Returns the end of the local day of a zone. */
    dayEndOf: (timezone: string, nowMs: number) => number
  }

const hourMs = 3_600_000
/** The venue publishes the funding of an hour shortly after it. */
const fundingLagMs = 60_000
/** A look goes on without the rates after this time. */
const fundingMsMax = 500

export function createLiveDriver(deps: LiveDeps): ModeDriver {
  const orderDeps = {
    ...deps,
    mids: () => deps.venue.mids(),
    async entryRefusalAtVenue(order: { asset: string; side: 'buy' | 'sell' }, terms: StrategyTerms) {
      const { userId, strategyId } = terms
      const [view, own] = await Promise.all([
        readVenue(deps, { userId, assets: [order.asset] }),
        ownPosition(deps.db, { userId, symbol: order.asset, schedule: strategyId }),
      ])
      return refusalBeside(order, view, own)
    },
  }
  return {
    watchMs: lookMs,
    hasVenueOrders: true,
    open: (terms, nowMs) => ({
      run: openRun(terms.initialMicros, deps.dayEndOf(terms.timezone, nowMs)),
      cursor: storedCursor(liveCursorOf({}, nowMs)),
    }),
    read: (account, terms, at) => readLive(deps, { account, terms, ...at }),
    place: (account, ordered) => place(account, ordered),
    async act(run, terms) {
      if (!run.isExit && (await isBeforeExit(deps.db, run.executionId))) return beforeExit
      const acted =
        run.isExit || run.decision.action === 'exit'
          ? await actOnExit(deps, run, terms)
          : await actOnOrders(orderDeps, run, terms)
      if ('waitMs' in acted) return acted
      if (!acted.hasActed || run.data.is_synced === true)
        return { ...acted.end, ...leftOf(deps, terms, acted.left) }
      const sync = await syncAfter(deps, terms)
      return { waitMs: 0, data: { ...acted.data, is_synced: true }, apply: sync }
    },
    tend: (account, terms, { nowMs }) => tendOrders(deps, { account, terms, nowMs }),
  }
}

const beforeExit: DriverAct = {
  outcome: 'not_executed',
  error: {
    code: 'conflict',
    message: 'An exit of the strategy began before this run had sent an order',
    retryable: false,
  },
  skipReason: 'overlap',
}

/** Ends an exit that cannot close what is left: the watch tries it again after a while. */
const leftOf = (
  { scheduleClock }: LiveDeps,
  { strategyId }: StrategyTerms,
  left: readonly string[] | undefined,
) =>
  left && {
    isFinal: true as const,
    async apply(tx: Tx) {
      const locked = await lockAccount(tx, { strategy_id: strategyId, mode: 'live' })
      if (!locked) return
      const now = scheduleClock.now()
      await storeAccount(tx, withLeft(locked, left, now.getTime()), now)
    },
  }

/** Notes the run and the orders of a decision, so that the account is looked at until they have ended. */
function place(account: StrategyAccount, { executionId, atMs, decision }: OrderedDecision): StrategyAccount {
  const cursor: LiveCursor = { ...liveCursorOf(account.cursor, atMs), run: executionId }
  const pending = decision.orders.filter(({ order_type }) => order_type !== 'stop')
  return { ...account, run: { ...account.run, pending }, cursor: storedCursor(cursor) }
}

/** Returns what brings the account up to date once the orders of a run have ended, so that the run shows its fills. */
async function syncAfter(deps: LiveDeps, terms: StrategyTerms): Promise<(tx: Tx) => Promise<void>> {
  const key = { strategy_id: terms.strategyId, mode: 'live' } as const
  const nowMs = deps.scheduleClock.now().getTime()
  const account = await findAccount(deps.db, key)
  if (!account) return async () => undefined
  const apply = await readChanges(deps, { account, terms, nowMs, readsGuards: false })
  return async (tx) => {
    const locked = await lockAccount(tx, key)
    if (!locked) return
    const synced = await apply(tx, locked)
    await storeFills(tx, synced.fills)
    const watch_at = new Date(nowMs + lookMs)
    await storeAccount(tx, { ...synced.account, watch_at }, new Date(nowMs))
  }
}

type Reading = {
  account: StrategyAccount
  terms: StrategyTerms
  nowMs: number
}

async function readLive(
  deps: LiveDeps,
  { purpose, ...reading }: Reading & Pick<ReadAt, 'purpose'>,
): Promise<ModeReading> {
  const { terms } = reading
  const [apply, facts] = await Promise.all([
    readChanges(deps, { ...reading, readsGuards: true }),
    purpose === 'decide' ? readFacts(deps, terms) : undefined,
  ])
  return {
    apply,
    stateOf: (account, atMs) =>
      liveState(account.run, { atMs, config: terms.config, facts, left: leftAssets(account, atMs) }),
  }
}

type Changes = Reading & { readsGuards: boolean }

/** Reads prices and rates, and returns what applies them to the locked account with the fills of the record. */
async function readChanges(deps: LiveDeps, changes: Changes): Promise<ModeReading['apply']> {
  const { terms, nowMs, readsGuards } = changes
  const assets = Object.keys(terms.config.decision.markets)
  const [mids, funding] = await Promise.all([deps.venue.mids(), readFunding(deps, changes)])
  const marks = new Map(
    assets.flatMap((asset): [string, bigint][] => {
      const mid = mids.get(asset)
      return mid === undefined ? [] : [[asset, toUnits(mid, priceDecimals)]]
    }),
  )
  const dayEndsMs = deps.dayEndOf(terms.timezone, nowMs)
  return (tx, locked) =>
    applyLiveReading(tx, locked, { terms, nowMs, marks, funding, dayEndsMs, readsGuards })
}

/** What the venue and the budget say of a strategy that is about to decide. */
async function readFacts(deps: LiveDeps, { userId, strategyId, config }: StrategyTerms): Promise<VenueFacts> {
  const assets = Object.keys(config.decision.markets)
  const [view, opening, spent] = await Promise.all([
    readVenue(deps, { userId, assets }),
    marketsOfOpenTasks(deps.db, { userId, strategyId }, ['perp_open']),
    spentMicros(deps.db, strategyId),
  ])
  return { view, opening, spentMicros: spent }
}

type FundingReading = Pick<Reading, 'nowMs'> & {
  account: Pick<StrategyAccount, 'run' | 'cursor'>
  terms: Pick<StrategyTerms, 'userId'>
}

/**
 * Reads the rates of the hours since the cursor, of the markets in which something is open. No guard and no exit waits for
 * a venue that does not answer: without the rates of one market the cursor stays, and the next look reads all of them.
 */
export async function readFunding(
  { funding }: Pick<LiveDeps, 'funding'>,
  { account, terms, nowMs }: FundingReading,
): Promise<HourlyFunding[]> {
  const { funding_ms: fromMs } = liveCursorOf(account.cursor, nowMs)
  const toMs = Math.floor((nowMs - fundingLagMs) / hourMs) * hourMs
  const held = [...account.run.account.positions.keys()]
  if (toMs <= fromMs || held.length === 0) return []
  const read = Promise.all(
    held.map(async (asset) => {
      const rates = await funding(asset, { fromMs, toMs: toMs + 1 }, terms.userId)
      return rates.map((rate) => hourOf(asset, rate))
    }),
  )
  const found = await withTimeLimit(read.catch(unlessAway), fundingMsMax)
  return found?.flat().sort((one, other) => one.atMs - other.atMs) ?? []
}

function unlessAway(error: unknown): undefined {
  if (!(error instanceof Fault)) throw error
}

const hourOf = (asset: string, { atMs, rate }: FundingRate): HourlyFunding => ({
  asset,
  atMs,
  rateUnits: fundingUnitsOf(rate),
})
