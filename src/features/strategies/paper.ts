import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Tx } from '#kernel/task/task.ts'
import { executeInBook, type ShownBook, type TakenLevels } from '#market/strategies/book-execution.ts'
import { type Execute, unitsOfPrice } from '#market/strategies/matching.ts'
import {
  type Advanced,
  advancePaper,
  assetsInUse,
  minuteMs,
  nextMinute,
  type PaperReading,
} from '#market/strategies/paper-run.ts'
import { openRun, stateOf, withOrders } from '#market/strategies/strategy-run.ts'
import type { Queryable } from '#store/query.ts'
import { findAccount, lockAccount, type StrategyAccount, storeAccount, storeFills } from './account-store.ts'
import type { Observe } from './market-reads.ts'
import type {
  DriverAct,
  ModeDriver,
  ModeReading,
  OrderedDecision,
  OrderedRun,
  StrategyTerms,
  Synced,
} from './mode-driver.ts'
import {
  fillRows,
  movedTo,
  openCursor,
  type PaperOrder,
  paperCursorOf,
  positionIn,
  toStoredCursor,
  withEnds,
} from './paper-cursor.ts'
import { lockLevels, shownBook, storeLevels } from './paper-levels.ts'

/**
 * Strategies on paper: their orders are filled from the books that the venue shows, and nothing is sent. What an account
 * has and up to where prices were applied is stored, so another instance goes on where one has stopped.
 */

export type PaperDeps = {
  db: Queryable
  /** The clock of schedules. */
  clock: Clock
  observe: Pick<Observe, 'minutes' | 'funding' | 'mids' | 'book'>
  /** Returns the end of each local day from the first time until after the second. */
  dayEnds(timezone: string, fromMs: number, toMs: number): number[]
}

/** An order arrives at the venue this long after its decision. */
export const latencyMs = 200
/** An order that was not filled for so long is cancelled. */
const orderMsMax = 60_000
const watchMs = 5_000
/** The most that a book may be old from which a stop is filled. */
const bookMsMax = 1_000
/** The most that an order without a limit of its own pays beyond the best price, as market orders of the venue. */
const slippageBps = 500n
const hourMs = 3_600_000
/** The rate of an hour is published within the first part of this time, and read after all of it. */
const fundingLagMs = 60_000
/** The venue serves about as many minutes. */
const minutesMax = 5_000
const retryMs = 300

export const createPaperDriver = (deps: PaperDeps): ModeDriver => ({
  watchMs,
  open({ initialMicros, timezone }, nowMs) {
    const [dayEndsMs = nowMs] = deps.dayEnds(timezone, nowMs, nowMs)
    return { run: openRun(initialMicros, dayEndsMs), cursor: toStoredCursor(openCursor(nowMs)) }
  },
  read: (account, terms, { nowMs }) => read(deps, { account, terms, nowMs }),
  place,
  act: (run, terms) => act(deps, { run, terms, nowMs: deps.clock.now().getTime() }),
})

type Reading = { account: StrategyAccount; terms: StrategyTerms; nowMs: number }
type Books = ReadonlyMap<string, ShownBook>

async function read(deps: PaperDeps, given: Reading): Promise<ModeReading> {
  const { terms, nowMs } = given
  const reading = await readPrices(deps, given)
  const hasArrived = hasArrivedBy(paperCursorOf(given.account).order, nowMs)
  const books = await readBooks(deps, { ...given, reading, hasArrived })
  return {
    apply: (tx, locked) => apply(tx, locked, { terms, reading, books }),
    stateOf: ({ run }, atMs) => stateOf(run, atMs, terms.config),
  }
}

const arrivalOf = ({ at_ms }: PaperOrder): number => at_ms + latencyMs
const hasArrivedBy = (order: PaperOrder | null, nowMs: number): boolean =>
  order !== null && nowMs >= arrivalOf(order)

/** Reads the prices and rates that the account has not seen yet. */
async function readPrices(
  { observe, dayEnds }: PaperDeps,
  { account, terms, nowMs }: Reading,
): Promise<PaperReading> {
  const { userId } = terms
  const cursor = paperCursorOf(account)
  const assets = assetsInUse(account.run)
  const toMs = Math.floor(nowMs / minuteMs) * minuteMs
  const minutes = Object.entries(cursor.minutes_from_ms)
    .map(([asset, fromMs]) => ({ asset, fromMs: Math.max(fromMs, toMs - minutesMax * minuteMs) }))
    .filter(({ fromMs }) => fromMs < toMs)
    .map(async ({ asset, fromMs }) => {
      const columns = await observe.minutes(asset, { fromMs, toMs }, userId).catch(unlessBusy)
      return columns ? [[asset, { columns, toMs }] as const] : []
    })
  const held = [...account.run.account.positions.keys()]
  const hour = { fromMs: hourOf(cursor.funding_to_ms), toMs: hourOf(nowMs - fundingLagMs) }
  const isFundingDue = held.length > 0 && hour.toMs > cursor.funding_to_ms
  const paid = { fromMs: hour.fromMs, toMs: hour.toMs + fundingLagMs / 2 }
  const rates = (isFundingDue ? held : []).map(async (asset) => {
    const found = await observe.funding(asset, paid, userId).catch(unlessBusy)
    return found ? [[asset, found] as const] : []
  })
  const mids = assets.length > 0 ? await observe.mids() : new Map<string, string>()
  const funding = (await Promise.all(rates)).flat()
  const hasFunding = isFundingDue && funding.length === held.length
  return {
    atMs: nowMs,
    minutes: Object.fromEntries((await Promise.all(minutes)).flat()),
    funding: hasFunding ? Object.fromEntries(funding) : {},
    fundingToMs: held.length === 0 ? nowMs : hasFunding ? paid.toMs : cursor.funding_to_ms,
    marks: Object.fromEntries(
      assets.flatMap((asset) => {
        const mid = mids.get(asset)
        return mid === undefined ? [] : [[asset, unitsOfPrice(mid)]]
      }),
    ),
    dayEnds: dayEnds(terms.timezone, cursor.at_ms, nowMs),
  }
}

/** What the venue does not serve now is read at the next reading. */
function unlessBusy(error: unknown): undefined {
  if (error instanceof Fault && error.retryable) return undefined
  throw error
}

const hourOf = (ms: number): number => Math.floor(ms / hourMs) * hourMs

type Priced = Reading & { reading: PaperReading; hasArrived: boolean }

/** Reads the books of the assets in which something would be filled now, after the orders have arrived. */
async function readBooks({ observe }: PaperDeps, given: Priced): Promise<Books> {
  const { account, terms, nowMs, reading, hasArrived } = given
  const cursor = paperCursorOf(account)
  const asked = new Set<string>()
  advancePaper({ run: account.run, cursor: positionIn(cursor) }, reading, {
    config: terms.config,
    hasArrived,
    executeAt: (asset) => () => {
      asked.add(asset)
      return undefined
    },
  })
  const { order } = cursor
  const sinceArrivalMs = order && hasArrived ? nowMs - arrivalOf(order) : bookMsMax
  const maxAgeMs = Math.min(bookMsMax, sinceArrivalMs)
  const books = [...asked].flatMap((asset) => {
    const rules = terms.config.decision.markets[asset]
    if (!rules) return []
    const book = observe.book(asset, maxAgeMs, terms.userId)
    return [book.then((shown) => [[asset, shownBook(shown, rules)] as const]).catch(unlessBusy)]
  })
  return new Map((await Promise.all(books)).flatMap((found) => found ?? []))
}

type Applied = { terms: StrategyTerms; reading: PaperReading; books: Books }
type Shown = { book: ShownBook; taken: TakenLevels }

/** Applies a reading to the locked account; the levels of a book are locked while orders take them. */
async function apply(tx: Tx, locked: StrategyAccount, { terms, reading, books }: Applied): Promise<Synced> {
  const cursor = paperCursorOf(locked)
  const { order } = cursor
  const shown = new Map<string, Shown>()
  for (const [market, book] of [...books].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const taken = await lockLevels(tx, { userId: terms.userId, market }, book)
    if (taken) shown.set(market, { book, taken })
  }
  const isLate = order !== null && reading.atMs > order.at_ms + orderMsMax
  const run = isLate ? { ...locked.run, pending: [] } : locked.run
  const advanced = advancePaper({ run, cursor: positionIn(cursor) }, reading, {
    config: terms.config,
    hasArrived: hasArrivedBy(order, reading.atMs),
    executeAt: (asset) => executionAt(shown.get(asset)),
  })
  for (const [market, { taken }] of shown) await storeLevels(tx, { userId: terms.userId, market }, taken)
  return syncedBy(locked, advanced, terms)
}

const executionAt = (shown: Shown | undefined): Execute | undefined =>
  shown && executeInBook(shown.book, shown.taken, { slippageBps })

function syncedBy(locked: StrategyAccount, advanced: Advanced, terms: StrategyTerms): Synced {
  const { run, fills, ends } = advanced
  const before = paperCursorOf(locked)
  const rows = fillRows(fills, { strategy_id: locked.strategy_id, cursor: before, terms })
  const cursor = movedTo(before, advanced.cursor)
  const { account, guards, pending, resting } = locked.run
  return {
    account: {
      ...locked,
      run,
      cursor: toStoredCursor({
        ...cursor,
        fills: cursor.fills + rows.length,
        order: cursor.order && withEnds(cursor.order, ends, terms),
      }),
    },
    fills: rows,
    hasChanged:
      rows.length > 0 ||
      ends.length > 0 ||
      run.account !== account ||
      run.guards !== guards ||
      run.pending.length !== pending.length ||
      run.resting.length !== resting.length,
  }
}

/** An exit cancels whatever could open a position, whether it waits for the book or rests. */
function place(
  account: StrategyAccount,
  { decision, executionId, seq, atMs }: OrderedDecision,
): StrategyAccount {
  const cursor = paperCursorOf(account)
  const { action, reason, orders } = decision
  const isExit = action === 'exit' || reason === 'flat'
  const before = isExit ? { ...account.run, pending: [], resting: [] } : account.run
  const entries = orders.filter(({ reduce_only }) => !reduce_only)
  const resting = orders.filter(({ order_type }) => order_type !== 'market')
  const from = Object.fromEntries(
    resting.map(({ asset }) => [asset, Math.max(nextMinute(atMs), cursor.minutes_from_ms[asset] ?? 0)]),
  )
  return {
    ...account,
    run: withOrders(before, decision),
    cursor: toStoredCursor({
      ...cursor,
      minutes_from_ms: { ...cursor.minutes_from_ms, ...from },
      runs: { ...cursor.runs, ...Object.fromEntries(entries.map(({ asset }) => [asset, executionId])) },
      order: {
        execution_id: executionId,
        seq,
        at_ms: atMs,
        reason,
        asked: orders.length - resting.length,
        full: 0,
        part: 0,
        error: null,
      },
    }),
  }
}

type Acting = { run: OrderedRun; terms: StrategyTerms; nowMs: number }

/** Waits until the orders have arrived, fills them in the commit of one step, and returns the outcome in the next. */
async function act(deps: PaperDeps, { run, terms, nowMs }: Acting): Promise<DriverAct> {
  const key = { strategy_id: terms.strategyId, mode: 'paper' } as const
  const account = await findAccount(deps.db, key)
  const order = account && paperCursorOf(account).order
  if (!account || order?.execution_id !== run.executionId || order.seq !== run.seq) return notExecuted(null)
  if (account.run.pending.length === 0) return outcomeOf(order)
  const waitMs = arrivalOf(order) - nowMs
  if (waitMs > 0) return { waitMs, data: {} }
  const reading = await read(deps, { account, terms, nowMs })
  return {
    waitMs: run.data.has_tried === true ? retryMs : 0,
    data: { has_tried: true },
    async apply(tx) {
      const locked = await lockAccount(tx, key)
      if (!locked) return
      const synced = await reading.apply(tx, locked)
      await storeFills(tx, synced.fills)
      await storeAccount(tx, synced.account, new Date(nowMs))
    },
  }
}

function outcomeOf({ asked, full, part, error }: PaperOrder): DriverAct {
  if (full === asked) return { outcome: 'executed', error: null, skipReason: null }
  return full + part > 0 ? { outcome: 'partial', error: null, skipReason: null } : notExecuted(error)
}

const texts: Readonly<Record<string, string>> = {
  insufficient_balance: 'What is available on paper does not cover the margin at the price of now',
  below_minimum: 'At the price of now the order is below the least order of the venue',
  insufficient_liquidity: 'The book of the venue had nothing for the order within its slippage',
}

function notExecuted(code: string | null): DriverAct {
  const known = code ?? 'expired'
  const message = texts[known] ?? 'The order was not filled in time'
  const skipReason = known === 'insufficient_balance' ? known : null
  return { outcome: 'not_executed', error: { code: known, message, retryable: false }, skipReason }
}
