import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type ExitFacts,
  type ExitMove,
  goneText,
  leastUnits,
  leftUnits,
  nextOfPair,
  type OrderFacts,
  type PairFacts,
  releasesOf,
  restUnits,
  type SaleFacts,
  sellableUnits,
  soldUnits,
} from './exit-rules.ts'

const shares = (count: number): bigint => BigInt(Math.round(count * 1e6))
const now = new Date('2026-12-01T00:00:00Z')
const book = { bidMicros: 400_000n, tickMicros: 10_000n, minSizeUnits: shares(5) }

const order = (more: Partial<OrderFacts> = {}): OrderFacts => ({
  isEnded: true,
  isEndKnown: true,
  sizeUnits: shares(100),
  matchedUnits: 0n,
  confirmedUnits: 0n,
  failedUnits: 0n,
  openUnits: 0n,
  ...more,
})
const bought = (units: number): OrderFacts =>
  order({ matchedUnits: shares(units), confirmedUnits: shares(units) })
const saleOf = (leg: 'tp' | 'sl', more: Partial<SaleFacts> = {}): SaleFacts => ({
  ...order(),
  orderId: `${leg} order`,
  leg,
  taskId: `${leg} task`,
  isTaskRunning: false,
  isSent: true,
  isResolved: false,
  ...more,
})
const exitOf = (leg: 'tp' | 'sl', state: ExitFacts['state'], more: Partial<ExitFacts> = {}): ExitFacts => ({
  id: leg,
  leg,
  state,
  orderId: state === 'resting' ? `${leg} order` : null,
  taskId: state === 'executing' || state === 'resting' ? `${leg} task` : null,
  isTaskRunning: false,
  taskError: null,
  triggerMicros: leg === 'tp' ? 600_000n : 300_000n,
  triggerPercentage: null,
  attempts: 0,
  retryAt: null,
  ...more,
})
const pairOf = (more: Partial<PairFacts> = {}, entry: Partial<PairFacts['entry']> = {}): PairFacts => ({
  now,
  entry: { ...bought(100), releasedUnits: 0n, averageMicros: 400_000n, mayReturn: false, ...entry },
  sales: [],
  exits: [],
  freeUnits: undefined,
  book,
  isMarketOver: false,
  ...more,
})
const statesOf = ({ moves }: ReturnType<typeof nextOfPair>) =>
  Object.fromEntries(moves.map(({ exit, state }) => [exit.leg, state]))
const live = (leg: 'tp' | 'sl', more: Partial<SaleFacts> = {}) =>
  saleOf(leg, { isEnded: false, isEndKnown: false, ...more })

describe('the exits of a purchase', () => {
  test('a stop-loss that sold a part is armed again for the rest, and the take-profit stays', () => {
    const sold = saleOf('sl', { matchedUnits: shares(60), confirmedUnits: shares(60) })
    const exits = [exitOf('sl', 'executing'), exitOf('tp', 'resting')]
    const step = nextOfPair(pairOf({ sales: [sold, saleOf('tp')], exits }))
    assert.deepEqual(statesOf(step), { sl: 'watched', tp: 'waiting' })
    const bid = { ...book, bidMicros: 200_000n }
    const next = nextOfPair(
      pairOf({ sales: [sold, saleOf('tp')], exits: [exitOf('sl', 'watched')], book: bid }),
    )
    assert.equal(next.moves[0]?.sale?.sizeUnits, shares(40))
  })

  test('nothing is armed and nothing ends before every trade of the purchase is listed and settled', () => {
    const entries: Partial<OrderFacts>[] = [
      { matchedUnits: shares(100), confirmedUnits: 0n },
      { matchedUnits: shares(100), confirmedUnits: shares(60) },
      { matchedUnits: shares(100), confirmedUnits: shares(60), openUnits: shares(40) },
      // The gateway has cancelled it, and has not read what matched before.
      { matchedUnits: 0n, confirmedUnits: 0n, isEndKnown: false },
      { isEnded: false },
    ]
    for (const entry of entries) {
      const exits = [exitOf('sl', 'waiting'), exitOf('tp', 'waiting')]
      assert.deepEqual(
        nextOfPair(pairOf({ exits }, entry)).moves,
        [],
        JSON.stringify(entry, (_, v) => String(v)),
      )
    }
    const nothing = { matchedUnits: 0n, confirmedUnits: 0n }
    const exits = [exitOf('sl', 'waiting')]
    assert.deepEqual(statesOf(nextOfPair(pairOf({ exits }, nothing))), { sl: 'cancelled' })
    assert.deepEqual(nextOfPair(pairOf({ exits }, { ...nothing, mayReturn: true })).moves, [])
  })

  test('a take-profit whose trades are not all settled ends nothing, and one that failed is placed again', () => {
    const exits = [exitOf('sl', 'watched'), exitOf('tp', 'resting')]
    const step = (more: Partial<SaleFacts>) =>
      statesOf(nextOfPair(pairOf({ sales: [saleOf('tp', { matchedUnits: shares(100), ...more })], exits })))
    assert.deepEqual(step({}), {})
    assert.deepEqual(step({ openUnits: shares(100) }), {})
    assert.deepEqual(step({ failedUnits: shares(100) }), { tp: 'waiting' })
    assert.deepEqual(step({ confirmedUnits: shares(70), failedUnits: shares(30) }), { tp: 'waiting' })
    assert.deepEqual(step({ confirmedUnits: shares(100) }), { sl: 'cancelled', tp: 'filled' })
  })

  test('a sale replaces the order of the other exit, and sells what that one has left', () => {
    const bid = { ...book, bidMicros: 200_000n }
    const resting = live('tp', { matchedUnits: shares(60), openUnits: shares(60) })
    const pair = pairOf({
      sales: [resting],
      exits: [exitOf('sl', 'watched'), exitOf('tp', 'resting')],
      book: bid,
    })
    const { moves } = nextOfPair({ ...pair, freeUnits: 0n })
    assert.deepEqual(
      moves.map(({ state, sale }) => [state, sale]),
      [['executing', { type: 'match', sizeUnits: shares(40), priceMicros: null, replaces: ['tp order'] }]],
    )
    // The cancel has crossed another fill, which the order shows before the list of trades, or the other way round.
    for (const more of [
      { matchedUnits: shares(90) },
      { openUnits: shares(90) },
      { confirmedUnits: shares(90) },
    ]) {
      const ended = saleOf('tp', { ...more })
      assert.equal(sellableUnits({ ...pair, sales: [ended] }, shares(500)), shares(10))
    }
    assert.equal(sellableUnits({ ...pair, sales: [saleOf('tp')] }, shares(7)), shares(7))
  })

  test('one exit executes at a time, and an order that no exit stands for is cancelled', () => {
    const bid = { ...book, bidMicros: 200_000n }
    const waiting = [exitOf('tp', 'waiting'), exitOf('sl', 'watched')]
    const both = nextOfPair(pairOf({ exits: waiting, book: bid }))
    assert.deepEqual(statesOf(both), { sl: 'executing' })
    const running = [exitOf('sl', 'executing', { isTaskRunning: true }), exitOf('tp', 'waiting')]
    assert.deepEqual(nextOfPair(pairOf({ exits: running, book: bid })).moves, [])
    const left = nextOfPair(pairOf({ sales: [live('tp')], exits: [exitOf('sl', 'watched')] }))
    assert.deepEqual(left.strays, ['tp order'])
    const own = nextOfPair(pairOf({ sales: [live('tp')], exits: [exitOf('tp', 'executing')] }))
    assert.deepEqual([statesOf(own), own.strays], [{ tp: 'resting' }, []])
    const sent = nextOfPair(pairOf({ sales: [live('tp', { isTaskRunning: true })], exits: [] }))
    assert.deepEqual(sent.strays, [])
  })

  test('exits whose shares were sold by hand end and say so', () => {
    const exits = [exitOf('sl', 'watched'), exitOf('tp', 'resting')]
    const step = nextOfPair(pairOf({ sales: [live('tp')], exits }, { releasedUnits: shares(100) }))
    assert.deepEqual(
      step.moves.map(({ exit, state, error }) => [exit.leg, state, error]),
      [
        ['sl', 'cancelled', goneText],
        ['tp', 'cancelled', goneText],
      ],
    )
    assert.deepEqual(step.strays, ['tp order'])
    const part = nextOfPair(pairOf({ sales: [live('tp')], exits }, { releasedUnits: shares(30) }))
    assert.deepEqual([statesOf(part), part.strays], [{ tp: 'waiting' }, ['tp order']])
    const next = [exitOf('tp', 'waiting')]
    const [placed] = nextOfPair(
      pairOf({ sales: [saleOf('tp')], exits: next }, { releasedUnits: shares(30) }),
    ).moves
    assert.equal(placed?.sale?.sizeUnits, shares(70))
  })

  test('a sale by hand takes unprotected shares first, and then those of the earliest purchase', () => {
    const lots = [
      { id: 'a', leftUnits: shares(100) },
      { id: 'b', leftUnits: shares(50) },
    ]
    assert.deepEqual(releasesOf(lots, shares(400)), [])
    assert.deepEqual(releasesOf(lots, shares(150)), [])
    assert.deepEqual(releasesOf(lots, shares(60)), [{ id: 'a', units: shares(90) }])
    assert.deepEqual(releasesOf(lots, shares(20)), [
      { id: 'a', units: shares(100) },
      { id: 'b', units: shares(30) },
    ])
    assert.deepEqual(releasesOf(lots, -1n), [
      { id: 'a', units: shares(100) },
      { id: 'b', units: shares(50) },
    ])
  })

  test('a sale that sold nothing waits longer each time, and a percentage is put on the tick above', () => {
    const error = 'The venue cannot be reached'
    const exits = [exitOf('sl', 'executing', { attempts: 2, taskError: error })]
    const [move] = nextOfPair(pairOf({ exits })).moves
    assert.deepEqual([move?.state, move?.attempts, move?.error], ['watched', 3, error])
    const other = { exits: [exitOf('tp', 'waiting'), exitOf('sl', 'watched')], freeUnits: 0n }
    const bids = { ...book, bidMicros: 200_000n }
    assert.deepEqual(
      nextOfPair(pairOf({ ...other, book: bids })).moves.map(({ state, attempts }) => [state, attempts]),
      [
        ['watched', 1],
        ['waiting', 1],
      ],
    )
    const held = exitOf('sl', 'watched', { retryAt: new Date(now.getTime() + 1) })
    const bid = { ...book, bidMicros: 200_000n }
    assert.deepEqual(nextOfPair(pairOf({ exits: [held], book: bid })).moves, [])
    const percent = exitOf('tp', 'waiting', { triggerMicros: null, triggerPercentage: 123_400n })
    assert.equal(nextOfPair(pairOf({ exits: [percent] })).moves[0]?.triggerMicros, 450_000n)
    const high = exitOf('tp', 'waiting', { triggerMicros: null, triggerPercentage: 99_000_000n })
    assert.equal(nextOfPair(pairOf({ exits: [high] })).moves[0]?.triggerMicros, 990_000n)
  })

  test('the end of the market ends exits in whatever state without an order', () => {
    for (const state of ['waiting', 'watched'] as const) {
      const exits = [exitOf('sl', state), exitOf('tp', state)]
      const step = nextOfPair(pairOf({ exits, isMarketOver: true, book: undefined }))
      assert.deepEqual(statesOf(step), { sl: 'cancelled', tp: 'cancelled' })
    }
  })
})

/** A venue that lags, fills in parts, fails trades and loses orders, and a gateway that records what it sees of it. */
type Trade = {
  units: bigint
  state: 'open' | 'confirmed' | 'failed'
  shown: 'none' | 'open' | 'confirmed' | 'failed'
}
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
type Task = {
  id: string
  exit: string
  move: ExitMove
  phase: 'release' | 'sign' | 'settle' | 'ended'
  order?: Placed
}
type Random = (below: number) => number

const randomOf = (seed: number): Random => {
  let state = seed
  return (below) => {
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
  readonly random: Random
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
    this.exits = legs.map((leg) => exitOf(leg, 'waiting'))
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
    const { shown, trades, size } = placed
    return {
      isEnded: shown.isEnded,
      isEndKnown: shown.isEndKnown,
      sizeUnits: size,
      matchedUnits: shown.matched,
      confirmedUnits: inShown(trades, 'confirmed'),
      failedUnits: inShown(trades, 'failed'),
      openUnits: inShown(trades, 'open'),
    }
  }
  isRunning = (id: string | null) => this.tasks.some((task) => task.id === id && task.phase !== 'ended')
  facts(freeUnits?: bigint): PairFacts {
    return pairOf({
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
      book: { ...book, bidMicros: this.bidMicros },
    })
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
    const changed = {
      state,
      attempts,
      taskId,
      orderId: orderId ?? exit.orderId,
      triggerMicros: triggerMicros ?? exit.triggerMicros,
    }
    this.exits = this.exits.map((each) => (each.id === exit.id ? { ...each, ...changed } : each))
    if (final.includes(state)) this.assertSold(exit.leg)
  }
  /** The venue acknowledges a cancel, and what matched before is not read yet. */
  cancel(placed: Placed): void {
    placed.isLive = false
    placed.shown.isEnded = true
  }

  step(task: Task): void {
    const exit = this.exits.find(({ id }) => id === task.exit)!
    const isWanted = exit.state === 'executing' && exit.taskId === task.id
    const sale = task.move.sale!
    if (task.phase === 'release') {
      if (this.random(6) === 0 || !isWanted) task.phase = 'ended'
      else {
        for (const placed of this.sales.filter(({ id }) => sale.replaces.includes(id))) {
          this.cancel(placed)
          placed.shown.matched = placed.matched
          placed.shown.isEndKnown = true
        }
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
    if (this.random(8) === 0) {
      // The venue has refused it.
      placed.isLive = false
      placed.shown.isEnded = placed.shown.isEndKnown = true
      task.phase = 'ended'
    } else if (task.move.sale!.type === 'match') {
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
    const { isEnded, isEndKnown, matchedUnits, confirmedUnits, failedUnits } = this.factsOf(placed)
    if (isEnded && isEndKnown && confirmedUnits + failedUnits >= matchedUnits) task.phase = 'ended'
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

  act(): void {
    const { random, entry, sales } = this
    const all = [entry, ...sales]
    const one = all[random(all.length)]!
    const running = this.tasks.filter(({ phase }) => phase !== 'ended')
    const acts: (() => void)[] = [
      () => this.match(entry, shares(1 + random(40))),
      () => {
        if (random(4) === 0) entry.isLive = false
      },
      () => this.match(one, random(2) === 0 ? one.size : one.size / 3n),
      () => {
        const trade = one.trades.find(({ state }) => state === 'open')
        if (trade) trade.state = random(6) === 0 ? 'failed' : 'confirmed'
      },
      () => {
        if (one !== entry && random(4) === 0) one.isLive = false
      },
      () => {
        this.bidMicros = BigInt(1 + random(99)) * 10_000n
      },
      () => {
        if (random(12) === 0) this.sellByHand()
      },
      () => {
        if (random(60) === 0) this.cancelExit()
      },
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
    const isOpen = [this.entry, ...this.sales].some(({ trades }) => inState(trades, 'open') > 0n)
    const left = this.ownUnits() - this.soldUnits()
    assert.ok(
      !isOpen && !this.entry.isLive && left < leastUnits,
      `the ${leg} has ended, and ${left} are left`,
    )
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
