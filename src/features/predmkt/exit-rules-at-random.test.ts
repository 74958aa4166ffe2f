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
} from './exit-rules.ts'

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

class Market {
  readonly random: (below: number) => number
  readonly entry: Placed
  sales: Placed[] = []
  tasks: Task[] = []
  exits: ExitFacts[]
  cancelled = new Set<string>()
  others: bigint
  releasedUnits = 0n
  soldByHand = 0n
  bidMicros = 400_000n
  count = 0
  constructor(seed: number) {
    this.random = randomOf(seed)
    this.others = shares(this.random(3) * 50)
    this.entry = this.place('entry', 'buy', shares(20 + this.random(100)))
    this.entry.shown.isSent = true
    const legs = this.random(4) === 0 ? (['sl'] as const) : (['sl', 'tp'] as const)
    this.exits = legs.map((leg) => newExit(leg))
  }

  place(leg: Placed['leg'], taskId: string, size: bigint): Placed {
    const shown = { isSent: false, isEnded: false, isEndKnown: false, matched: 0n }
    return { id: `order ${this.count++}`, leg, taskId, size, matched: 0n, isLive: true, trades: [], shown }
  }

  match(placed: Placed, wanted: bigint): void {
    const left = placed.size - placed.matched
    const units = wanted < left ? wanted : left
    if (!placed.isLive || units <= 0n) return
    placed.matched += units
    placed.trades.push({ units, state: 'open', shown: 'none' })
    if (placed.matched === placed.size) placed.isLive = false
  }

  /** What the sales have sold, trades that can still fail included. */
  soldUnits = () => sumOf(this.sales, ({ matched, trades }) => matched - inState(trades, 'failed'))
  ownUnits = () => inState(this.entry.trades, 'confirmed') - this.releasedUnits

  factsOf(placed: Placed): OrderFacts {
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
  isRunning = (id: string | null) => this.tasks.some((task) => task.id === id && task.phase !== 'ended')
  facts(freeUnits?: bigint): PairFacts {
    return {
      now,
      isMarketOver: false,
      entry: {
        ...this.factsOf(this.entry),
        releasedUnits: this.releasedUnits,
        averageMicros: 400_000n,
        mayReturn: false,
      },
      sales: this.sales.map((placed) => ({
        ...this.factsOf(placed),
        orderId: placed.id,
        leg: placed.leg as 'tp' | 'sl',
        taskId: placed.taskId,
        isTaskRunning: this.isRunning(placed.taskId),
        isSent: placed.shown.isSent,
        isResolved: false,
      })),
      exits: this.exits
        .filter(({ state }) => !final.includes(state))
        .map((exit) => ({ ...exit, isTaskRunning: this.isRunning(exit.taskId) })),
      freeUnits,
      book: { tickMicros: 10_000n, minSizeUnits: shares(5), bidMicros: this.bidMicros },
    }
  }
  /** Shares on the chain, less what the record shows as held by orders. */
  freeUnits(): bigint {
    const onChain =
      inState(this.entry.trades, 'confirmed') +
      this.others -
      this.soldByHand -
      sumOf(this.sales, ({ trades }) => inState(trades, 'confirmed'))
    const held = sumOf(this.facts().sales, (sale) => restUnits(sale) + soldUnits(sale) - sale.confirmedUnits)
    return onChain > held ? onChain - held : 0n
  }

  /** One reading of the venue, in which lists may be older than the order. */
  read(placed: Placed): void {
    const { shown, trades } = placed
    if (!shown.isSent) return
    for (const trade of trades) if (this.random(2) === 0) trade.shown = trade.state
    this.release()
    if (this.random(3) === 0) return
    if (placed.matched > shown.matched) shown.matched = placed.matched
    if (!placed.isLive) shown.isEnded = shown.isEndKnown = true
  }

  round(): void {
    const optimistic = nextOfPair(this.facts())
    const isStarting = optimistic.moves.some(({ sale }) => sale)
    const { moves, strays } = isStarting ? nextOfPair(this.facts(this.freeUnits())) : optimistic
    for (const move of moves) this.apply(move)
    for (const id of strays) this.cancel(this.sales.find((sale) => sale.id === id)!)
  }
  apply(move: ExitMove): void {
    const { exit, state, orderId, triggerMicros, attempts = exit.attempts, sale } = move
    const taskId = sale ? `task ${this.count++}` : exit.taskId
    if (sale) this.tasks.push({ id: taskId!, exit: exit.id, move, phase: 'release' })
    const ids = { taskId, orderId: orderId ?? exit.orderId }
    const changed = { state, attempts, ...ids, triggerMicros: triggerMicros ?? exit.triggerMicros }
    this.exits = this.exits.map((each) => (each.id === exit.id ? { ...each, ...changed } : each))
    if (final.includes(state)) this.assertSold(exit.leg)
  }
  /** The venue acknowledges a cancel, and what matched before is not read yet. */
  cancel(placed: Placed): void {
    placed.isLive = false
    placed.shown.isEnded = true
  }

  /** An order ends, and what it has matched is read. */
  end(placed: Placed): void {
    this.cancel(placed)
    placed.shown.matched = placed.matched
    placed.shown.isEndKnown = true
  }

  step(task: Task): void {
    const exit = this.exits.find(({ id }) => id === task.exit)!
    const isWanted = exit.state === 'executing' && exit.taskId === task.id
    const sale = task.move.sale!
    if (task.phase === 'release') {
      if (this.random(6) === 0 || !isWanted) task.phase = 'ended'
      else {
        for (const placed of this.sales) if (sale.replaces.includes(placed.id)) this.end(placed)
        task.phase = 'sign'
      }
    } else if (task.phase === 'sign') this.sign(task, isWanted)
    else if (task.phase === 'settle') this.settle(task)
  }
  sign(task: Task, isWanted: boolean): void {
    const size = sellableUnits(this.facts(), this.freeUnits())
    if (!isWanted || size < leastUnits) {
      task.phase = 'ended'
      return
    }
    const { leg } = task.move.exit
    const placed = this.place(leg, task.id, size)
    this.sales.push(placed)
    task.order = placed
    task.phase = 'settle'
    if (this.random(8) === 0) this.end(placed)
    else if (task.move.sale!.type === 'match') {
      this.match(placed, this.random(3) === 0 ? size / 2n : size)
      placed.isLive = false
    }
    this.assertNotOversold()
  }
  settle(task: Task): void {
    const placed = task.order!
    placed.shown.isSent = true
    if (placed.isLive) {
      task.phase = 'ended'
      return
    }
    this.read(placed)
    if (isComplete(this.factsOf(placed))) task.phase = 'ended'
  }

  sellByHand(): void {
    const free = this.freeUnits()
    const units = this.random(2) === 0 ? free : free / 3n
    if (units <= 0n || this.tasks.some(({ phase }) => phase !== 'ended')) return
    this.soldByHand += units
    this.release()
  }
  /** Runs with each record of trades. */
  release(): void {
    if (this.exits.every(({ state }) => final.includes(state))) return
    const { trades } = this.entry
    const boughtUnits = inShown(trades, 'confirmed') + inShown(trades, 'open') + this.others
    const held = boughtUnits - this.soldByHand - sumOf(this.facts().sales, soldUnits)
    const lot = { id: 'entry', leftUnits: leftUnits(this.facts()) }
    for (const { units } of releasesOf([lot], held)) this.releasedUnits += units
  }
  cancelExit(): void {
    const exit = this.exits[this.random(this.exits.length)]!
    if (final.includes(exit.state)) return
    this.cancelled.add(exit.id)
    this.exits = this.exits.map((each) => (each === exit ? { ...each, state: 'cancelled' } : each))
  }

  wipe(placed: Placed | undefined): void {
    if (placed) placed.isLive = false
  }

  act(): void {
    const { random, entry, sales } = this
    const all = [entry, ...sales]
    const one = all[random(all.length)]!
    const running = this.tasks.filter(({ phase }) => phase !== 'ended')
    const oneIn = (of: number, run: () => void) => () => void (random(of) === 0 && run())
    const acts: (() => void)[] = [
      () => this.match(entry, shares(1 + random(40))),
      oneIn(4, () => this.wipe(entry)),
      () => this.match(one, random(2) === 0 ? one.size : one.size / 3n),
      () => {
        const trade = one.trades.find(({ state }) => state === 'open')
        if (trade) trade.state = random(6) === 0 ? 'failed' : 'confirmed'
      },
      oneIn(4, () => this.wipe(sales.at(-1))),
      () => {
        this.bidMicros = BigInt(1 + random(99)) * 10_000n
      },
      oneIn(12, () => this.sellByHand()),
      oneIn(60, () => this.cancelExit()),
      () => this.read(one),
      () => {
        for (const placed of all) this.read(placed)
      },
      () => this.round(),
      () => this.round(),
      () => running[0] && this.step(running[0]),
      () => running[0] && this.step(running[0]),
    ]
    acts[random(acts.length)]!()
    this.assertNotOversold()
    const executing = this.exits.filter(({ state }) => state === 'executing')
    assert.ok(executing.length <= 1, 'both exits execute')
  }
  /** Everything settles and is listed, and the price falls below every stop. */
  calm(): void {
    this.bidMicros = 10_000n
    this.entry.isLive = false
    const all = () => [this.entry, ...this.sales]
    for (let turn = 0; turn < 200; turn += 1) {
      for (const placed of all()) {
        for (const trade of placed.trades) if (trade.state === 'open') trade.state = 'confirmed'
        this.read(placed)
      }
      for (const task of this.tasks) this.step(task)
      this.round()
      this.assertNotOversold()
    }
  }

  assertNotOversold(): void {
    const resting = sumOf(this.sales, ({ isLive, size, matched }) => (isLive ? size - matched : 0n))
    assert.ok(this.soldUnits() + resting <= this.ownUnits(), 'the exits sell more than the purchase has left')
  }
  assertSold(leg: string): void {
    const all = [this.entry, ...this.sales]
    assert.ok(!this.entry.isLive && all.every(({ trades }) => inState(trades, 'open') === 0n))
    assert.ok(this.ownUnits() - this.soldUnits() < leastUnits, `the ${leg} has ended, and shares are left`)
  }
}

test('whatever the venue does, exits never sell too much, never execute together, and end only with nothing left', () => {
  const seeds = 1_500
  let sold = 0
  let partly = 0
  for (let seed = 1; seed <= seeds; seed += 1) {
    const market = new Market(seed)
    try {
      for (let turn = 0; turn < 150; turn += 1) market.act()
      if (market.soldUnits() > 0n && market.ownUnits() - market.soldUnits() >= leastUnits) partly += 1
      market.calm()
      const left = market.ownUnits() - market.soldUnits()
      if (market.cancelled.has('sl')) continue
      assert.ok(left < leastUnits, `${left} are left without a stop-loss that sells them`)
      assert.ok(market.exits.every(({ state }) => final.includes(state)))
      if (market.soldUnits() > 0n) sold += 1
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
    }
  }
  assert.ok(sold > seeds / 3, `only ${sold} of ${seeds} runs have sold anything`)
  assert.ok(partly > seeds / 50, `only ${partly} of ${seeds} runs were sold in part before the calm`)
})
