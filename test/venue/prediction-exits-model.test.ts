import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ExitFacts,
  type ExitMove,
  isComplete,
  leastUnits,
  leftUnits,
  nextOfPair,
  type OrderFacts,
  type PairFacts,
  releasesOf,
  restUnits,
  sellableUnits,
  soldUnits,
} from '#features/predmkt/exit-rules.ts'

/** A venue that lags, fills in parts, fails trades and loses orders, and a gateway that records what it sees of it. */

const shares = (count: number): bigint => BigInt(count * 1_000_000)
const now = new Date('2026-12-01T00:00:00Z')
const newExit = (leg: 'tp' | 'sl'): ExitFacts => ({
  id: leg,
  leg,
  state: 'waiting',
  orderId: null,
  taskId: null,
  isTaskRunning: false,
  taskError: null,
  error: null,
  triggerMicros: leg === 'tp' ? 600_000n : 300_000n,
  triggerPercentage: null,
  attempts: 0,
  retryAt: null,
})

type TradeState = 'open' | 'confirmed' | 'failed'
type Trade = { units: bigint; state: TradeState; shown: TradeState | 'none' }
type Placed = {
  id: string
  leg: 'tp' | 'sl' | 'entry'
  taskId: string
  size: bigint
  matched: bigint
  isLive: boolean
  trades: Trade[]
  shown: { isSent: boolean; isEnded: boolean; isEndKnown: boolean; matched: bigint }
}

type Phase = 'release' | 'sign' | 'settle' | 'ended'
type Task = { id: string; exit: string; move: ExitMove; phase: Phase; order?: Placed }

const randomOf = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

const sumOf = <T>(list: readonly T[], units: (each: T) => bigint): bigint =>
  list.reduce((sum, each) => sum + units(each), 0n)
const inState = (trades: readonly Trade[], state: Trade['state']): bigint =>
  sumOf(trades, (trade) => (trade.state === state ? trade.units : 0n))
const inShown = (trades: readonly Trade[], shown: Trade['shown']): bigint =>
  sumOf(trades, (trade) => (trade.shown === shown ? trade.units : 0n))
const final: readonly ExitFacts['state'][] = ['filled', 'cancelled', 'failed']

type Market = ReturnType<typeof newMarket>

type NewOrder = Pick<Placed, 'leg' | 'taskId' | 'size'>
const newOrder = (id: string, order: NewOrder): Placed => ({
  id,
  ...order,
  matched: 0n,
  isLive: true,
  trades: [],
  shown: { isSent: false, isEnded: false, isEndKnown: false, matched: 0n },
})

function newMarket(seed: number) {
  const random = randomOf(seed)
  const others = shares(random(3) * 50)
  const entry = newOrder('order 0', { leg: 'entry', taskId: 'buy', size: shares(20 + random(100)) })
  entry.shown.isSent = true
  const legs = random(4) === 0 ? (['sl'] as const) : (['sl', 'tp'] as const)
  return {
    random,
    entry,
    sales: [] as Placed[],
    tasks: [] as Task[],
    exits: legs.map((leg): ExitFacts => newExit(leg)),
    cancelled: new Set<string>(),
    others,
    releasedUnits: 0n,
    soldByHand: 0n,
    bidMicros: 400_000n,
    count: 1,
  }
}

function match(placed: Placed, wanted: bigint): void {
  const left = placed.size - placed.matched
  const units = wanted < left ? wanted : left
  if (!placed.isLive || units <= 0n) return
  placed.matched += units
  placed.trades.push({ units, state: 'open', shown: 'none' })
  if (placed.matched === placed.size) placed.isLive = false
}

/** What the sales have sold, trades that can still fail included. */
const soldAtVenue = (market: Market): bigint =>
  sumOf(market.sales, ({ matched, trades }) => matched - inState(trades, 'failed'))
const ownedUnits = (market: Market): bigint =>
  inState(market.entry.trades, 'confirmed') - market.releasedUnits
/** The shares of the purchase that no exit has sold. */
const unsoldUnits = (market: Market): bigint => ownedUnits(market) - soldAtVenue(market)

function factsOf(placed: Placed): OrderFacts {
  const { shown, trades, size: sizeUnits } = placed
  const { isEnded, isEndKnown, matched: matchedUnits } = shown
  return {
    isEnded,
    isEndKnown,
    sizeUnits,
    matchedUnits,
    confirmedUnits: inShown(trades, 'confirmed'),
    failedUnits: inShown(trades, 'failed'),
    openUnits: inShown(trades, 'open'),
  }
}

const isTaskRunning = (market: Market, id: string | null): boolean =>
  market.tasks.some((task) => task.id === id && task.phase !== 'ended')
function pairFacts(market: Market, freeUnits?: bigint): PairFacts {
  return {
    now,
    isMarketOver: false,
    entry: {
      ...factsOf(market.entry),
      releasedUnits: market.releasedUnits,
      averageMicros: 400_000n,
      mayReturn: false,
    },
    sales: market.sales.map((placed) => ({
      ...factsOf(placed),
      orderId: placed.id,
      leg: placed.leg as 'tp' | 'sl',
      taskId: placed.taskId,
      isTaskRunning: isTaskRunning(market, placed.taskId),
      isSent: placed.shown.isSent,
      isResolved: false,
    })),
    exits: market.exits
      .filter(({ state }) => !final.includes(state))
      .map((exit) => ({ ...exit, isTaskRunning: isTaskRunning(market, exit.taskId) })),
    freeUnits,
    book: {
      tickMicros: 10_000n,
      minSizeUnits: shares(5),
      bids: [{ priceMicros: market.bidMicros, sizeUnits: shares(1_000) }],
      asks: [],
      lastPriceMicros: market.bidMicros,
    },
  }
}

/** Shares on the chain, less what the record shows as held by orders. */
function unheldUnits(market: Market): bigint {
  const onChain =
    inState(market.entry.trades, 'confirmed') +
    market.others -
    market.soldByHand -
    sumOf(market.sales, ({ trades }) => inState(trades, 'confirmed'))
  const held = sumOf(
    pairFacts(market).sales,
    (sale) => restUnits(sale) + soldUnits(sale) - sale.confirmedUnits,
  )
  return onChain > held ? onChain - held : 0n
}

/** One reading of the venue, in which lists may be older than the order. */
function read(market: Market, placed: Placed): void {
  const { shown, trades } = placed
  if (!shown.isSent) return
  for (const trade of trades) if (market.random(2) === 0) trade.shown = trade.state
  release(market)
  if (market.random(3) === 0) return
  if (placed.matched > shown.matched) shown.matched = placed.matched
  if (!placed.isLive) shown.isEnded = shown.isEndKnown = true
}

function round(market: Market): void {
  const optimistic = nextOfPair(pairFacts(market))
  const isStarting = optimistic.moves.some(({ sale }) => sale)
  const { moves, strays } = isStarting ? nextOfPair(pairFacts(market, unheldUnits(market))) : optimistic
  for (const move of moves) applyMove(market, move)
  for (const id of strays) cancelOrder(market.sales.find((sale) => sale.id === id)!)
}

function applyMove(market: Market, move: ExitMove): void {
  const { exit, state, orderId, triggerMicros, attempts = exit.attempts, sale } = move
  const taskId = sale ? `task ${market.count++}` : exit.taskId
  if (sale) market.tasks.push({ id: taskId!, exit: exit.id, move, phase: 'release' })
  const ids = { taskId, orderId: orderId ?? exit.orderId }
  const changed = { state, attempts, ...ids, triggerMicros: triggerMicros ?? exit.triggerMicros }
  market.exits = market.exits.map((each) => (each.id === exit.id ? { ...each, ...changed } : each))
  if (final.includes(state)) assertSold(market, exit.leg)
}

/** The venue acknowledges a cancel, and what matched before is not read yet. */
function cancelOrder(placed: Placed): void {
  placed.isLive = false
  placed.shown.isEnded = true
}

/** An order ends, and what it has matched is read. */
function endOrder(placed: Placed): void {
  cancelOrder(placed)
  placed.shown.matched = placed.matched
  placed.shown.isEndKnown = true
}

function isWanted({ exits }: Market, task: Task): boolean {
  const exit = exits.find(({ id }) => id === task.exit)!
  return exit.state === 'executing' && exit.taskId === task.id
}

function runStep(market: Market, task: Task): void {
  const sale = task.move.sale!
  if (task.phase === 'release') {
    if (market.random(6) === 0 || !isWanted(market, task)) task.phase = 'ended'
    else {
      for (const placed of market.sales) if (sale.replaces.includes(placed.id)) endOrder(placed)
      task.phase = 'sign'
    }
  } else if (task.phase === 'sign') sign(market, task)
  else if (task.phase === 'settle') settle(market, task)
}

function sign(market: Market, task: Task): void {
  const size = sellableUnits(pairFacts(market), unheldUnits(market))
  if (!isWanted(market, task) || size < leastUnits) {
    task.phase = 'ended'
    return
  }
  const { leg } = task.move.exit
  const placed = newOrder(`order ${market.count++}`, { leg, taskId: task.id, size })
  market.sales.push(placed)
  task.order = placed
  task.phase = 'settle'
  if (market.random(8) === 0) endOrder(placed)
  else if (task.move.sale!.type === 'match') {
    match(placed, market.random(3) === 0 ? size / 2n : size)
    placed.isLive = false
  }
  assertNotOversold(market)
}

function settle(market: Market, task: Task): void {
  const placed = task.order!
  placed.shown.isSent = true
  if (placed.isLive) {
    task.phase = 'ended'
    return
  }
  read(market, placed)
  if (isComplete(factsOf(placed))) task.phase = 'ended'
}

function sellByHand(market: Market): void {
  const free = unheldUnits(market)
  const units = market.random(2) === 0 ? free : free / 3n
  if (units <= 0n || market.tasks.some(({ phase }) => phase !== 'ended')) return
  market.soldByHand += units
  release(market)
}

/** Runs with each record of trades. */
function release(market: Market): void {
  if (market.exits.every(({ state }) => final.includes(state))) return
  const { trades } = market.entry
  const boughtUnits = inShown(trades, 'confirmed') + inShown(trades, 'open') + market.others
  const held = boughtUnits - market.soldByHand - sumOf(pairFacts(market).sales, soldUnits)
  const lot = { id: 'entry', leftUnits: leftUnits(pairFacts(market)) }
  for (const { units } of releasesOf([lot], held)) market.releasedUnits += units
}

function cancelExit(market: Market): void {
  const exit = market.exits[market.random(market.exits.length)]!
  if (final.includes(exit.state)) return
  market.cancelled.add(exit.id)
  market.exits = market.exits.map((each) => (each === exit ? { ...each, state: 'cancelled' } : each))
}

function wipe(placed: Placed | undefined): void {
  if (placed) placed.isLive = false
}

function act(market: Market): void {
  const { random, entry, sales } = market
  const all = [entry, ...sales]
  const one = all[random(all.length)]!
  const running = market.tasks.filter(({ phase }) => phase !== 'ended')
  const oneIn = (of: number, run: () => void) => () => void (random(of) === 0 && run())
  const acts: (() => void)[] = [
    () => match(entry, shares(1 + random(40))),
    oneIn(4, () => wipe(entry)),
    () => match(one, random(2) === 0 ? one.size : one.size / 3n),
    () => {
      const trade = one.trades.find(({ state }) => state === 'open')
      if (trade) trade.state = random(6) === 0 ? 'failed' : 'confirmed'
    },
    oneIn(4, () => wipe(sales.at(-1))),
    () => {
      market.bidMicros = BigInt(1 + random(99)) * 10_000n
    },
    oneIn(12, () => sellByHand(market)),
    oneIn(60, () => cancelExit(market)),
    () => read(market, one),
    () => {
      for (const placed of all) read(market, placed)
    },
    () => round(market),
    () => round(market),
    () => running[0] && runStep(market, running[0]),
    () => running[0] && runStep(market, running[0]),
  ]
  acts[random(acts.length)]!()
  assertNotOversold(market)
  const executing = market.exits.filter(({ state }) => state === 'executing')
  assert.ok(executing.length <= 1, 'both exits execute')
}

/** Everything settles and is listed, and the price falls below every stop. */
function calm(market: Market): void {
  market.bidMicros = 10_000n
  market.entry.isLive = false
  const all = () => [market.entry, ...market.sales]
  for (let turn = 0; turn < 200; turn += 1) {
    for (const placed of all()) {
      for (const trade of placed.trades) if (trade.state === 'open') trade.state = 'confirmed'
      read(market, placed)
    }
    for (const task of market.tasks) runStep(market, task)
    round(market)
    assertNotOversold(market)
  }
}

function assertNotOversold(market: Market): void {
  const resting = sumOf(market.sales, ({ isLive, size, matched }) => (isLive ? size - matched : 0n))
  assert.ok(resting <= unsoldUnits(market), 'the exits sell more than the purchase has left')
}

function assertSold(market: Market, leg: string): void {
  const all = [market.entry, ...market.sales]
  assert.ok(!market.entry.isLive && all.every(({ trades }) => inState(trades, 'open') === 0n))
  assert.ok(unsoldUnits(market) < leastUnits, `the ${leg} has ended, and shares are left`)
}

test('whatever the venue does, exits never sell too much, never execute together, and end only with nothing left', () => {
  const seeds = 1_500
  let sold = 0
  let partly = 0
  for (let seed = 1; seed <= seeds; seed += 1) {
    const market = newMarket(seed)
    try {
      for (let turn = 0; turn < 150; turn += 1) act(market)
      if (soldAtVenue(market) > 0n && unsoldUnits(market) >= leastUnits) partly += 1
      calm(market)
      const left = unsoldUnits(market)
      if (market.cancelled.has('sl')) continue
      assert.ok(left < leastUnits, `${left} are left without a stop-loss that sells them`)
      assert.ok(market.exits.every(({ state }) => final.includes(state)))
      if (soldAtVenue(market) > 0n) sold += 1
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
    }
  }
  assert.ok(sold > seeds / 3, `only ${sold} of ${seeds} runs have sold anything`)
  assert.ok(partly > seeds / 50, `only ${partly} of ${seeds} runs were sold in part before the calm`)
})
