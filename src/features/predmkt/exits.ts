import { createBatchLoader } from '#kernel/async/batch-loader.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { Book, PredictionMarket } from '#kernel/money/prediction-views.ts'
import { exitGrant } from '#kernel/task/policy-action.ts'
import type { Admission, TaskKind, Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { PredictionAccountRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import { chainShares, sharesOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { exitCancelled, exitHeldBack } from './events.ts'
import type { BookFacts } from './exit-prices.ts'
import {
  beginsHoldBack,
  type ExitMove,
  type ExitSale,
  isComplete,
  leftUnits,
  nextOfPair,
  type PairFacts,
  releasesOf,
} from './exit-rules.ts'
import type { ExitTaskData } from './exit-task.ts'
import { orderFacts, orderMs } from './order-admission.ts'
import type { StoredTerms } from './order-task.ts'
import { lockAccount, walletOfRow } from './store/account-store.ts'
import { openPairs, type Pair, release } from './store/exit-facts.ts'
import { changeExit, lockExits } from './store/exit-store.ts'
import { noteCancelAsked } from './store/order-store.ts'
import { batchMax, loadBooks } from './venue-views.ts'

/**
 * Take-profit and stop-loss. A take-profit rests in the book for settled shares; a stop-loss, and a take-profit below
 * the market's smallest order, are watched by the bid of the book. The first that sells ends the other.
 */

export type ExitDeps = PredmktDeps & { exitTasks: TaskKind; books: BookReader }
type Watched = { userId: string; venue: string; wallet: VenueWallet; now: Date }

/** A book is read once for all accounts of a round. */
const bookMs = 1_000
/** Whether a market without a bid is over is asked so often. */
const overMs = 15_000
const booksMax = 2_000
const readsMax = 4

export type BookReader = {
  /** The book of an outcome; undefined where the venue shows none. */
  of(outcomeId: string): Promise<Book | undefined>
  isOver(marketId: string): Promise<boolean>
}

export function createBookReader({ venue }: Pick<PredmktDeps, 'venue'>): BookReader {
  const nowMs = () => performance.now()
  const books = createTtlCache<Book | undefined>({ ttlMs: bookMs, entriesMax: booksMax, nowMs })
  const over = createTtlCache<boolean>({ ttlMs: overMs, entriesMax: booksMax, nowMs })
  const load = createBatchLoader<string, Book>({
    load: (ids) => loadBooks(venue, ids),
    loadsMax: readsMax,
    keysMax: batchMax,
  })
  const loadMarket = createBatchLoader<string, PredictionMarket>({
    load: (ids) => venue.marketsById(ids),
    loadsMax: readsMax,
    keysMax: batchMax,
  })
  return {
    of: (outcomeId) => books.get(outcomeId, () => load(outcomeId)),
    isOver: (marketId) =>
      over.get(marketId, async () => {
        const market = await loadMarket(marketId)
        return market !== undefined && (market.isClosed || market.payoutMicros !== null)
      }),
  }
}

/** Exits of one account that are advanced at a time, and for how long in one round. */
const atOnceMax = 8
const roundMs = 20_000

/**
 * Advances the exits of an account; returns how many purchases have open ones, and the orders to cancel. Without a
 * reading of the venue, `isRead` is false: shares that the chain lacks may have been sold by a trade that is not recorded.
 */
export async function advanceExits(
  deps: ExitDeps,
  account: PredictionAccountRow,
  { now, isRead }: { now: Date; isRead: boolean },
): Promise<{ count: number; strays: string[] }> {
  const owner = { userId: account.user_id, venue: deps.venue.name }
  const watched = { ...owner, wallet: walletOfRow(account), now }
  const pairs = await openPairs(deps.db, owner, now)
  const strays: string[] = []
  const endsAt = later(deps.clock.now(), roundMs)
  await readTogether(deps, pairs)
  const pending = [...pairs]
  const work = async (): Promise<void> => {
    for (let pair = pending.shift(); pair && deps.clock.now() < endsAt; pair = pending.shift())
      await advancePair(deps, watched, pair).then(
        (found) => strays.push(...found),
        (error: unknown) => logFailure(deps, { error, entry: pair?.row.order_id }),
      )
  }
  await Promise.all(Array.from({ length: Math.min(atOnceMax, pairs.length) }, work))
  if (isRead)
    await releaseMissing(deps, account, { pairs, now }).catch((error: unknown) =>
      logFailure(deps, { error, user: account.user_id }),
    )
  return { count: pairs.length, strays }
}

/** A failure of one purchase, of whatever kind, must not stop the exits of others. */
function logFailure(
  { log }: ExitDeps,
  { error, ...where }: { error: unknown } & Record<string, unknown>,
): void {
  const level = error instanceof Fault ? 'debug' : 'warn'
  log[level]({ error, ...where }, 'exits not advanced; the next round tries again')
}

const isArmed = ({ entry, exits }: Pair): boolean =>
  isComplete(entry) && exits.some(({ state }) => state === 'waiting' || state === 'watched')

/** Reads the books of all exits and the markets of those without a bid by few requests, before each is compared. */
async function readTogether(deps: ExitDeps, pairs: readonly Pair[]): Promise<void> {
  await Promise.all(pairs.filter(isArmed).map(({ row }) => bookOf(deps, row)))
}

async function advancePair(deps: ExitDeps, watched: Watched, pair: Pair): Promise<string[]> {
  const { row } = pair
  const seen = isArmed(pair) ? await bookOf(deps, row) : noBook
  const facts: PairFacts = { ...pair, ...seen, now: watched.now, freeUnits: undefined }
  let step = nextOfPair(facts)
  if (step.moves.some(({ sale }) => sale)) {
    const market = { protocol: row.protocol }
    const { freeUnits } = await sharesOf(deps, { ...watched, market, outcomeId: row.outcome_id })
    step = nextOfPair({ ...facts, freeUnits })
  }
  if (step.moves.length > 0) await apply(deps, watched, { pair, moves: step.moves })
  return step.strays
}

const noBook = { book: undefined, isMarketOver: false }

/** Without the book exits still follow their orders, and none is armed. */
async function bookOf(
  deps: ExitDeps,
  { outcome_id: outcomeId, market_id: marketId }: PredictionOrderRow,
): Promise<{ book: BookFacts | undefined; isMarketOver: boolean }> {
  const { books } = deps
  try {
    const book = await books.of(outcomeId)
    return { book, isMarketOver: book?.bids[0] === undefined && (await books.isOver(marketId)) }
  } catch (error) {
    logFailure(deps, { error, outcome: outcomeId })
    return noBook
  }
}

type Moves = { pair: Pair; moves: readonly ExitMove[] }

/** Moves the exits of a purchase together, unless one of them has changed since they were read. */
async function apply(deps: ExitDeps, watched: Watched, { pair, moves }: Moves): Promise<void> {
  const { transact, events } = deps
  const { userId, now } = watched
  const hasEvents = await transact(async (tx) => {
    const locked = await lockExits(tx, pair.row.order_id)
    const isStale = pair.rows.some((row) => {
      const current = locked.find(({ id }) => id === row.id)
      return current?.state !== row.state || current.exit_task_id !== row.exit_task_id
    })
    if (isStale) return false
    for (const move of moves) {
      const { exit, state, orderId, triggerMicros, attempts = exit.attempts, error, sale } = move
      const taskId = sale && (await start(deps, tx, { ...watched, pair, exit, sale }))
      await changeExit(tx, {
        id: exit.id,
        from: exit.state,
        state,
        attempts,
        now,
        ...(orderId !== undefined && { order_id: orderId }),
        ...(triggerMicros !== undefined && { trigger_price: triggerMicros }),
        ...(error !== undefined && { error }),
        ...(taskId !== undefined && { exit_task_id: taskId }),
      })
    }
    const found = moves.flatMap((move) => {
      const row = pair.rows.find(({ id }) => id === move.exit.id)
      if (!row || move.error === undefined) return []
      if (move.state === 'cancelled') return exitCancelled(row, move.error, now)
      return beginsHoldBack(move) ? exitHeldBack(row, move.error, now) : []
    })
    if (found.length > 0) await events.add(tx, userId, found)
    return found.length > 0
  })
  if (hasEvents) events.notify(userId)
}

type Started = Watched & { pair: Pair; exit: ExitMove['exit']; sale: ExitSale }

async function start(
  deps: ExitDeps,
  tx: Tx,
  { userId, wallet, pair: { row }, exit, sale }: Started,
): Promise<string> {
  const { enqueue, exitTasks, policy, chain } = deps
  const data: ExitTaskData = {
    wallet,
    terms: termsOfSale(row, sale),
    leg: exit.leg,
    entry_order_id: row.order_id,
    cost_units: '0',
    counted_units: '0',
    replaces: sale.replaces,
  }
  await noteCancelAsked(tx, { userId, venue: deps.venue.name }, sale.replaces)
  const action = { userId, ...orderFacts(deps, 0n), principal: 'gateway' as const }
  const spend = { action, grant: exitGrant(chain.row.id), check: () => policy.check(action) }
  const admission: Admission = { data, first: 'release', deadlineMs: orderMs, spend }
  return enqueue(tx, { userId, kind: exitTasks, input: {}, admission })
}

const termsOfSale = (
  { outcome_id }: PredictionOrderRow,
  { type, priceMicros, sizeUnits }: ExitSale,
): StoredTerms => ({
  outcomeId: outcome_id,
  side: 'sell',
  timeInForce: type === 'rest' ? 'gtc' : 'fak',
  postOnly: false,
  expiresAt: null,
  priceMicros: String(priceMicros),
  boundMicros: null,
  sizeUnits: String(sizeUnits),
  allInUnits: null,
  maxFeeUnits: null,
})

/** The shares of exits are compared with the chain so often, and given up once they were missing for so long. */
const sharesReadMs = 60_000
const missingMs = 2 * 60_000

type Checked = { pairs: readonly Pair[]; now: Date }

/** Makes purchases with exits give up shares that have left the wallet without a trade. */
async function releaseMissing(
  deps: ExitDeps,
  { user_id: userId, wallet_address: wallet, shares_read_at: readAt }: PredictionAccountRow,
  { pairs, now }: Checked,
): Promise<void> {
  const { db, venue, transact } = deps
  if (readAt !== null && now < later(readAt, sharesReadMs)) return
  // While trades are open, the chain and the record differ.
  const isOpen = ({ entry, sales }: Pair) => [entry, ...sales].some(({ openUnits }) => openUnits > 0n)
  const withExits = pairs.filter(({ exits }) => exits.length > 0)
  const byOutcome = Map.groupBy(withExits.toSorted(byTime), ({ row }) => row.outcome_id)
  const outcomes = [...byOutcome].filter(([, lots]) => !lots.some(isOpen))
  const heldUnits = await chainShares(
    deps,
    wallet,
    outcomes.map(([outcomeId, [pair]]) => ({ outcomeId, market: { protocol: pair!.row.protocol } })),
  )
  await transact(async (tx) => {
    await lockAccount(tx, { userId, venue: venue.name })
    const current = new Map(
      (await openPairs(tx, { userId, venue: venue.name }, now)).map((pair) => [pair.row.order_id, pair]),
    )
    await query(tx, 'update prediction_account set shares_read_at = $3 where user_id = $1 and venue = $2', [
      userId,
      venue.name,
      now,
    ])
    for (const [index, [, read]] of outcomes.entries()) {
      const lots = read.flatMap(({ row }) => current.get(row.order_id) ?? [])
      // The chain was read before the lock, so that what has been bought or matched since is compared next time.
      if (lots.some(isOpen) || sumLeft(lots) > sumLeft(read)) continue
      const units = lots.map((pair) => ({ id: pair.row.order_id, leftUnits: leftUnits(pair) }))
      const releases = releasesOf(units, heldUnits[index] ?? 0n)
      const isMissing = lots.every(({ row }) => row.short_since && now >= later(row.short_since, missingMs))
      if (isMissing) await release(tx, releases)
      const since = releases.length === 0 || isMissing ? null : now
      await query(
        tx,
        `update prediction_order set short_since = case when $2::timestamptz is not null
           then coalesce(short_since, $2) end
         where order_id = any($1) and (short_since is null) = ($2::timestamptz is not null)`,
        [lots.map(({ row }) => row.order_id), since],
      )
    }
  })
}

const sumLeft = (lots: readonly Pair[]): bigint => lots.reduce((sum, pair) => sum + leftUnits(pair), 0n)

const byTime = (a: Pair, b: Pair): number =>
  a.row.at.getTime() - b.row.at.getTime() || a.row.order_id.localeCompare(b.row.order_id)
