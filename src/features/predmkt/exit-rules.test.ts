import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BookFacts } from './exit-prices.ts'
import {
  beginsHoldBack,
  type ExitFacts,
  farText,
  goneText,
  heldText,
  nextOfPair,
  notReachedText,
  type OrderFacts,
  type PairFacts,
  pauseMs,
  releasesOf,
  type SaleFacts,
  sellableUnits,
} from './exit-rules.ts'

const shares = (count: number): bigint => BigInt(Math.round(count * 1e6))
const now = new Date('2026-12-01T00:00:00Z')
/** A narrow book with more shares on both sides than any purchase here has. */
const bookAt = (bidMicros: bigint): BookFacts => ({
  tickMicros: 10_000n,
  minSizeUnits: shares(5),
  bids: [{ priceMicros: bidMicros, sizeUnits: shares(1_000) }],
  asks: [{ priceMicros: bidMicros + 20_000n, sizeUnits: shares(1_000) }],
  lastPriceMicros: null,
})
const book = bookAt(400_000n)

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
  error: null,
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
    const bid = bookAt(200_000n)
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
    const bid = bookAt(200_000n)
    const resting = live('tp', { matchedUnits: shares(60), openUnits: shares(60) })
    const pair = pairOf({
      sales: [resting],
      exits: [exitOf('sl', 'watched'), exitOf('tp', 'resting')],
      book: bid,
    })
    const { moves } = nextOfPair({ ...pair, freeUnits: 0n })
    assert.deepEqual(
      moves.map(({ state, sale }) => [state, sale]),
      [
        [
          'executing',
          { type: 'match', sizeUnits: shares(40), priceMicros: 160_000n, replaces: ['tp order'] },
        ],
      ],
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
    const bid = bookAt(200_000n)
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
    // The exit was read while its task ran, and the order a moment later.
    const read = [exitOf('tp', 'executing', { isTaskRunning: true })]
    assert.deepEqual(nextOfPair(pairOf({ sales: [live('tp')], exits: read })), { moves: [], strays: [] })
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
    const bids = bookAt(200_000n)
    assert.deepEqual(
      nextOfPair(pairOf({ ...other, book: bids })).moves.map(({ state, attempts }) => [state, attempts]),
      [
        ['watched', 1],
        ['waiting', 1],
      ],
    )
    const held = exitOf('sl', 'watched', { retryAt: new Date(now.getTime() + 1) })
    const bid = bookAt(200_000n)
    assert.deepEqual(nextOfPair(pairOf({ exits: [held], book: bid })).moves, [])
    const percent = exitOf('tp', 'waiting', { triggerMicros: null, triggerPercentage: 123_400n })
    assert.equal(nextOfPair(pairOf({ exits: [percent] })).moves[0]?.triggerMicros, 450_000n)
    const high = exitOf('tp', 'waiting', { triggerMicros: null, triggerPercentage: 99_000_000n })
    assert.equal(nextOfPair(pairOf({ exits: [high] })).moves[0]?.triggerMicros, 990_000n)
  })

  test('a take-profit off the grid, which has become coarser, is placed at the tick above', () => {
    const waiting = exitOf('tp', 'waiting', { triggerMicros: 604_000n })
    const [placed] = nextOfPair(pairOf({ exits: [waiting] })).moves
    assert.deepEqual([placed?.triggerMicros, placed?.sale?.priceMicros], [610_000n, 610_000n])
    const highest = exitOf('tp', 'waiting', { triggerMicros: 999_000n })
    assert.equal(nextOfPair(pairOf({ exits: [highest] })).moves[0]?.sale?.priceMicros, 990_000n)
    // Fewer shares than the market's smallest order are sold once the bid is there.
    const watched = exitOf('tp', 'watched', { triggerMicros: 604_000n })
    const few = { confirmedUnits: shares(3), matchedUnits: shares(3) }
    const sells = (bid: bigint) => nextOfPair(pairOf({ exits: [watched], book: bookAt(bid) }, few)).moves[0]
    assert.deepEqual([sells(600_000n), sells(610_000n)?.sale?.priceMicros], [undefined, 610_000n])
  })

  test('a sale of a take-profit that fails again and again waits up to an hour, and that of a stop-loss a minute', () => {
    const error = 'The price must be a multiple of 0.01'
    const pause = (attempts: number, more: Partial<ExitFacts> = {}) =>
      pauseMs({ leg: 'tp', error, attempts, ...more })
    assert.deepEqual(
      [1, 2, 3, 9, 99].map((attempts) => pause(attempts)),
      [15_000, 30_000, 60_000, 3_600_000, 3_600_000],
    )
    assert.equal(pause(99, { leg: 'sl' }), 60_000)
    // The exit does not learn when the order has ended that holds its shares.
    assert.equal(pause(99, { error: heldText }), 60_000)
  })

  test('an exit says once that it is held back: with its third sale that fails, or where the bid is too far', () => {
    const failed = (attempts: number) =>
      nextOfPair(pairOf({ exits: [exitOf('tp', 'executing', { attempts, taskError: 'No' })] })).moves[0]!
    assert.deepEqual(
      [0, 1, 2, 3].map((attempts) => beginsHoldBack(failed(attempts))),
      [false, false, true, false],
    )
    const far = (error: string | null) =>
      ({ exit: exitOf('sl', 'watched', { error }), state: 'watched', error: farText }) as const
    assert.deepEqual([far(null), far(farText)].map(beginsHoldBack), [true, false])
    const placed = nextOfPair(pairOf({ exits: [exitOf('tp', 'waiting', { attempts: 3 })] })).moves[0]!
    assert.equal(beginsHoldBack(placed), false)
  })

  test('the end of the market ends exits in whatever state without an order', () => {
    for (const state of ['waiting', 'watched'] as const) {
      const exits = [exitOf('sl', state), exitOf('tp', state)]
      const step = nextOfPair(pairOf({ exits, isMarketOver: true, book: undefined }))
      assert.deepEqual(statesOf(step), { sl: 'cancelled', tp: 'cancelled' })
    }
  })

  test('a stop-loss sells nothing to a bid far below the trigger and the price of the market, and goes on watching', () => {
    const thin = (bid: bigint, lastPriceMicros: bigint | null): BookFacts => ({
      ...book,
      bids: [{ priceMicros: bid, sizeUnits: shares(1_000) }],
      asks: [{ priceMicros: 450_000n, sizeUnits: shares(1_000) }],
      lastPriceMicros,
    })
    const watched = exitOf('sl', 'watched')
    const [held] = nextOfPair(pairOf({ exits: [watched], book: thin(10_000n, 280_000n) })).moves
    assert.deepEqual([held?.state, held?.error, held?.sale], ['watched', farText, undefined])
    const notified = exitOf('sl', 'watched', { error: farText })
    assert.deepEqual(nextOfPair(pairOf({ exits: [notified], book: thin(10_000n, 280_000n) })).moves, [])
    const [move] = nextOfPair(pairOf({ exits: [notified], book: thin(250_000n, 280_000n) })).moves
    assert.deepEqual([move?.state, move?.sale?.priceMicros], ['executing', 210_000n])
  })

  test('a take-profit far below the price of the market sells to no bid far below that price, either', () => {
    const bids = (bid: bigint): BookFacts => ({
      ...book,
      bids: [{ priceMicros: bid, sizeUnits: shares(1_000) }],
      asks: [],
      lastPriceMicros: 600_000n,
    })
    const trigger = { triggerMicros: 10_000n }
    const low = exitOf('tp', 'waiting', trigger)
    const watched = exitOf('tp', 'watched', trigger)
    const moveIn = (exit: ExitFacts, seen: BookFacts) =>
      nextOfPair(pairOf({ exits: [exit], book: seen })).moves[0]
    // A thief bids what the take-profit asks.
    assert.deepEqual(moveIn(low, bids(10_000n))?.state, 'watched')
    assert.equal(moveIn(watched, bids(10_000n)), undefined)
    // An honest bid has its shares.
    const sale = moveIn(watched, bids(460_000n))?.sale
    assert.deepEqual([sale?.type, sale?.priceMicros], ['match', 450_000n])
    // Once the market itself has fallen there, it rests.
    assert.equal(moveIn(watched, { ...bids(5_000n), lastPriceMicros: 12_000n })?.state, 'waiting')
  })

  test('an exit whose price has moved before the signature goes on at once', () => {
    const [profit] = nextOfPair(
      pairOf({ exits: [exitOf('tp', 'executing', { taskError: notReachedText })] }),
    ).moves
    assert.deepEqual([profit?.state, profit?.attempts], ['waiting', undefined])
    for (const taskError of [farText, notReachedText]) {
      const exits = [exitOf('sl', 'executing', { taskError })]
      const [move] = nextOfPair(pairOf({ exits })).moves
      assert.deepEqual([move?.state, move?.attempts], ['watched', undefined], taskError)
    }
  })

  test('a purchase whose trades lack a unit by rounding is complete once the record is done with it', () => {
    const matchedUnits = shares(100) + 1n
    const stateWith = (entry: Partial<PairFacts['entry']>) =>
      statesOf(nextOfPair(pairOf({ exits: [exitOf('sl', 'waiting')] }, { matchedUnits, ...entry })))
    assert.deepEqual(stateWith({}), { sl: 'watched' })
    assert.deepEqual(stateWith({ isEndKnown: false }), {})
    assert.deepEqual(stateWith({ matchedUnits: shares(100) + 10_000n }), {})
  })
})
