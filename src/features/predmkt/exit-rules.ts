import { backoffMs } from '#kernel/async/backoff.ts'
import { mulDiv } from '#kernel/money/money.ts'
import type { PredictionExitRow } from '#store/tables/predmkt.ts'
import { type BookFacts, canRest, judgeProfit, judgeStop, onTick } from './exit-prices.ts'

/**
 * What the exits of one purchase do next, by what its shares show. An exit ends only once no share of the purchase is
 * left to sell, by the end of the market, or by a cancel of the user, which is stored elsewhere. One exit of a purchase
 * executes at a time.
 */

/** Percentages have four decimals: one percent is ten thousand. */
const wholePercentage = 1_000_000n
/** The venue sells nothing smaller, so that less is left of no purchase. */
export const leastUnits = 10_000n

/** An order with its trades, as they are recorded. */
export type OrderFacts = {
  isEnded: boolean
  /** Whether what matched before the end is known, and its trades are listed. */
  isEndKnown: boolean
  sizeUnits: bigint
  /** What the venue states as matched, trades that failed included. */
  matchedUnits: bigint
  confirmedUnits: bigint
  failedUnits: bigint
  /** Trades whose settlement is open. */
  openUnits: bigint
}
export type EntryFacts = OrderFacts & {
  /** Shares of the purchase that were sold by hand, or have left the wallet otherwise. */
  releasedUnits: bigint
  /** Micro-dollars for one confirmed share, the fee included. */
  averageMicros: bigint
  /** The venue does not know the order any more, which counts as its end until it lists the order again. */
  mayReturn: boolean
}
export type SaleFacts = OrderFacts & {
  orderId: string
  leg: 'tp' | 'sl'
  taskId: string
  isTaskRunning: boolean
  /** False while the venue is not known to have the order. */
  isSent: boolean
  isResolved: boolean
}
export type ExitFacts = Pick<PredictionExitRow, 'id' | 'leg' | 'state'> & {
  orderId: string | null
  taskId: string | null
  isTaskRunning: boolean
  /** Why the last task of the exit sold nothing. */
  taskError: string | null
  /** Why the exit has not sold when it was last tried. */
  error: string | null
  triggerMicros: bigint | null
  triggerPercentage: bigint | null
  /** Attempts in a row that sold nothing. */
  attempts: number
  /** An exit that could not sell waits until then. */
  retryAt: Date | null
}
export type PairFacts = {
  now: Date
  entry: EntryFacts
  /** The orders of the purchase's exits. */
  sales: readonly SaleFacts[]
  exits: readonly ExitFacts[]
  /** Shares that no order and no task holds; undefined where they were not read. */
  freeUnits: bigint | undefined
  /** The book is undefined where the venue shows none. */
  book: BookFacts | undefined
  isMarketOver: boolean
}

export type ExitSale = {
  /** Rests in the book at its price, or matches at once. */
  type: 'rest' | 'match'
  sizeUnits: bigint
  priceMicros: bigint
  /** Orders of the purchase's other exit that hold the shares. */
  replaces: string[]
}
export type ExitMove = {
  exit: ExitFacts
  state: PredictionExitRow['state']
  orderId?: string
  triggerMicros?: bigint
  attempts?: number
  error?: string
  /** The exit executes this sale by a task. */
  sale?: ExitSale
}
export type PairStep = {
  moves: ExitMove[]
  /** Live orders that no exit stands for any more. */
  strays: string[]
}

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n)

/** What an order has sold or is selling. The list of trades may lag behind the order, and the order behind its trades. */
export const soldUnits = ({ matchedUnits, confirmedUnits, failedUnits, openUnits }: OrderFacts): bigint =>
  max(matchedUnits - failedUnits, confirmedUnits + openUnits)

const recordedUnits = ({ confirmedUnits, failedUnits, openUnits }: OrderFacts): bigint =>
  confirmedUnits + failedUnits + openUnits

/** Shares that an order still holds in the book. */
export const restUnits = (order: OrderFacts): bigint =>
  order.isEnded ? 0n : max(0n, order.sizeUnits - max(order.matchedUnits, recordedUnits(order)))

/** Whether the trades of the order are listed: what they lack of its match can be sold to nobody. */
const isListed = (order: OrderFacts): boolean => order.matchedUnits - recordedUnits(order) < leastUnits

/** Whether nothing of the order can change any more. */
export const isComplete = (order: OrderFacts): boolean =>
  order.isEnded && order.isEndKnown && order.openUnits === 0n && isListed(order)

/** Whether shares that count as sold may come back, or shares that count as left may be sold already. */
const isUnsure = (sale: SaleFacts): boolean =>
  sale.openUnits > 0n ||
  !isListed(sale) ||
  (!sale.isSent && !sale.isEnded) ||
  (sale.isEnded && !sale.isEndKnown)

/** Shares of the purchase that its exits have not sold. */
export const leftUnits = ({ entry, sales }: Pick<PairFacts, 'entry' | 'sales'>): bigint =>
  max(0n, entry.confirmedUnits - entry.releasedUnits - sum(sales.map(soldUnits)))

/** How much an exit sells now; `freeUnits` are shares that no order and no task holds. */
export const sellableUnits = (facts: Pick<PairFacts, 'entry' | 'sales'>, freeUnits: bigint): bigint =>
  min(leftUnits(facts), freeUnits)

type Lot = { id: string; leftUnits: bigint }

/** What purchases with exits give up, the earliest first, where fewer shares are held than their exits would sell. */
export function releasesOf(lots: readonly Lot[], heldUnits: bigint): { id: string; units: bigint }[] {
  let excess = sum(lots.map((lot) => lot.leftUnits)) - max(0n, heldUnits)
  return lots.flatMap(({ id, leftUnits: left }) => {
    const units = min(left, max(0n, excess))
    excess -= units
    return units > 0n ? [{ id, units }] : []
  })
}

type Pair = PairFacts & {
  leftUnits: bigint
  isUnsure: boolean
  /** Sent orders of the pair that have not ended. */
  openSales: SaleFacts[]
  isExecuting: boolean
}

export function nextOfPair(facts: PairFacts): PairStep {
  const { exits, sales } = facts
  const pair: Pair = {
    ...facts,
    leftUnits: leftUnits(facts),
    isUnsure: sales.some(isUnsure),
    openSales: sales.filter(({ isSent, isEnded }) => isSent && !isEnded),
    isExecuting: exits.some(({ state }) => state === 'executing'),
  }
  const moves: ExitMove[] = []
  // A stop-loss goes first: what it sells need not be placed.
  for (const exit of exits.toSorted((a, b) => a.leg.localeCompare(b.leg))) {
    const move = nextOfExit(exit, pair)
    if (move) moves.push(move)
    if (move?.sale) pair.isExecuting = true
  }
  return { moves, strays: straysOf(pair, moves) }
}

function nextOfExit(exit: ExitFacts, pair: Pair): ExitMove | undefined {
  switch (exit.state) {
    case 'executing':
      return afterTask(exit, pair)
    case 'resting':
      return afterOrder(exit, pair)
    case 'waiting':
      return arm(exit, pair)
    case 'watched':
      return watch(exit, pair)
    default:
      return undefined
  }
}

function afterTask(exit: ExitFacts, pair: Pair): ExitMove | undefined {
  if (exit.isTaskRunning) return undefined
  const own = pair.sales.filter(({ taskId }) => taskId === exit.taskId)
  const live = own.find(({ isEnded, isSent }) => isSent && !isEnded)
  if (live) return { exit, state: 'resting', orderId: live.orderId, attempts: 0 }
  return own.every(isComplete) ? armAgain(exit, pair, own) : undefined
}

function afterOrder(exit: ExitFacts, pair: Pair): ExitMove | undefined {
  const own = pair.sales.filter(({ orderId }) => orderId === exit.orderId)
  const live = own.find(({ isEnded }) => !isEnded)
  if (live && pair.leftUnits < leastUnits) return endOf(exit, pair)
  // Shares of the order have left otherwise: it is cancelled, and what remains is placed anew.
  if (live && restUnits(live) > pair.leftUnits) return { exit, state: 'waiting', attempts: 0 }
  if (!own.every(isComplete)) return undefined
  // The venue has wiped the order, or the other exit has replaced it; a cancel of the user has ended the exit itself.
  return own.some(({ isResolved }) => isResolved) ? endOfMarket(exit) : armAgain(exit, pair, own)
}

/** An exit whose order has ended is armed again for what is left. */
function armAgain(exit: ExitFacts, pair: Pair, own: readonly SaleFacts[]): ExitMove | undefined {
  if (pair.leftUnits < leastUnits) return endOf(exit, pair)
  const state = exit.leg === 'sl' ? 'watched' : 'waiting'
  const hasSold = own.some((sale) => soldUnits(sale) > 0n)
  if (hasSold || exit.state === 'resting') return { exit, state, attempts: 0 }
  // The price has moved before the signature: the exit goes on watching it without a pause.
  if (exit.taskError === farText) return { exit, state, error: farText }
  if (exit.taskError === notReachedText) return { exit, state }
  return { ...holdBack(exit, exit.taskError ?? 'The sale was not executed'), state }
}

export const heldText = 'Other orders hold the shares of the purchase'
/** An exit that cannot sell now is tried again later. */
const holdBack = (exit: ExitFacts, error: string): ExitMove => ({
  exit,
  state: exit.state,
  attempts: exit.attempts + 1,
  error,
})

const failuresMax = 3
/** Whether the user learns by this move that the exit does not sell: once for each time in which it does not. */
export const beginsHoldBack = ({ exit, error, attempts }: ExitMove): boolean =>
  error === farText ? exit.error !== farText : error !== undefined && attempts === failuresMax

/** Ends an exit that has nothing left to sell, unless a part may come back. */
function endOf(exit: ExitFacts, pair: Pair): ExitMove | undefined {
  if (pair.entry.mayReturn || pair.isUnsure) return undefined
  const { sales, entry } = pair
  const hasSold = (list: readonly SaleFacts[]) => list.some(({ confirmedUnits }) => confirmedUnits > 0n)
  if (hasSold(sales.filter(({ leg }) => leg === exit.leg))) return { exit, state: 'filled' }
  if (entry.releasedUnits > 0n && !hasSold(sales)) return { exit, state: 'cancelled', error: goneText }
  return { exit, state: 'cancelled' }
}

export const goneText = 'The shares of the purchase were sold or moved elsewhere'
const endOfMarket = (exit: ExitFacts): ExitMove => ({
  exit,
  state: 'cancelled',
  error: 'The market is closed',
})

const minuteMs = 60_000
/**
 * How long an exit waits that could not sell. Each attempt of a take-profit is a task, and the price may have been
 * reached for days.
 */
export const pauseMs = ({ leg, error, attempts }: Pick<ExitFacts, 'leg' | 'error' | 'attempts'>): number =>
  backoffMs(
    { firstMs: 15_000, maxMs: leg === 'tp' && error !== heldText ? 60 * minuteMs : minuteMs },
    attempts - 1,
  )

const isHeldBack = ({ retryAt }: ExitFacts, now: Date): boolean => retryAt !== null && now < retryAt

/** Arms an exit once its purchase has ended and every share of it is settled. */
function arm(exit: ExitFacts, pair: Pair): ExitMove | undefined {
  const { entry, book, now } = pair
  if (!isComplete(entry)) return undefined
  if (pair.leftUnits < leastUnits) return endOf(exit, pair)
  if (pair.isMarketOver) return endOfMarket(exit)
  if (isHeldBack(exit, now)) return undefined
  const wantedMicros = exit.triggerMicros ?? profitOf(exit, entry.averageMicros)
  if (exit.leg === 'sl') return { exit, state: 'watched', triggerMicros: wantedMicros }
  if (!book) return undefined
  const triggerMicros = onTick(wantedMicros, book)
  if (!canRest(triggerMicros, pair.leftUnits, book)) return { exit, state: 'watched', triggerMicros }
  if (pair.isExecuting || pair.isUnsure || pair.openSales.length > 0) return undefined
  const sizeUnits = min(pair.leftUnits, pair.freeUnits ?? pair.leftUnits)
  if (sizeUnits < book.minSizeUnits) return holdBack(exit, heldText)
  const sale: ExitSale = { type: 'rest', sizeUnits, priceMicros: triggerMicros, replaces: [] }
  return { exit, state: 'executing', triggerMicros, sale }
}

const profitOf = ({ triggerPercentage }: ExitFacts, averageMicros: bigint): bigint =>
  mulDiv(averageMicros, wholePercentage + (triggerPercentage ?? 0n), wholePercentage, 'up')

export const farText =
  'No bid is within a quarter of the trigger, or of the price of the market if it is lower'
export const notReachedText = 'The price has moved away from the trigger before the sale was signed'

/** Sells once the bid has reached the price. */
function watch(exit: ExitFacts, pair: Pair): ExitMove | undefined {
  const { leg, triggerMicros } = exit
  const { book, openSales } = pair
  if (pair.leftUnits < leastUnits) return endOf(exit, pair)
  if (pair.isMarketOver) return endOfMarket(exit)
  if (triggerMicros === null || !book || isHeldBack(exit, pair.now)) return undefined
  // A sale that failed has left enough for an order in the book.
  if (leg === 'tp' && canRest(triggerMicros, pair.leftUnits, book)) return { exit, state: 'waiting' }
  if (pair.isExecuting) return undefined
  const triggered = { triggerMicros, sizeUnits: pair.leftUnits }
  const judged = leg === 'sl' ? judgeStop(triggered, book) : judgeProfit({ ...triggered, rests: false }, book)
  if (judged.type !== 'sell')
    return judged.type === 'far' && exit.error !== farText
      ? { exit, state: exit.state, error: farText }
      : undefined
  const heldUnits =
    pair.freeUnits === undefined ? pair.leftUnits : pair.freeUnits + sum(openSales.map(restUnits))
  const sizeUnits = min(pair.leftUnits, heldUnits)
  if (sizeUnits < leastUnits) return holdBack(exit, heldText)
  const { priceMicros } = judged
  const replaces = openSales.map(({ orderId }) => orderId)
  return { exit, state: 'executing', sale: { type: 'match', sizeUnits, priceMicros, replaces } }
}

/** The exits are read a moment before their orders, so that the task of an exit may have ended in between. */
function straysOf({ exits, openSales }: Pair, moves: readonly ExitMove[]): string[] {
  const after = exits.map((exit) => ({ ...exit, ...moves.find((move) => move.exit === exit) }))
  const isSaleOf = ({ state, orderId, taskId }: (typeof after)[number], sale: SaleFacts): boolean =>
    (state === 'resting' && orderId === sale.orderId) || (state === 'executing' && taskId === sale.taskId)
  return openSales
    .filter((sale) => !sale.isTaskRunning && !after.some((exit) => isSaleOf(exit, sale)))
    .map(({ orderId }) => orderId)
}
