import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OpenPosition } from '#market/strategies/account.ts'
import type { FarmingConfig, MarketRules, OrderIntent } from '#market/strategies/strategy.ts'
import { openRun, type RunConfig, stateOf } from '#market/strategies/strategy-run.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'
import { exitDue, type FailedExit, failedExitOf } from './exit-due.ts'

const [openedMs, dayEndsMs] = [Date.parse('2026-11-01T12:00:00Z'), Date.parse('2026-11-02T05:00:00Z')]
const rules: MarketRules = {
  kind: 'perp',
  size_decimals: 5,
  price_decimals: 1,
  leverage_max: 40,
  venue_leverage_max: 40,
  min_order_usd: '10',
}
const strategy: FarmingConfig = {
  type: 'day_trade_farming',
  asset: 'BTC',
  order_notional_usd: '300',
  leverage: 1,
  is_cross: false,
  slippage_bps: 50,
  tp_is_market: false,
  sl_is_market: true,
}
const config: RunConfig = {
  decision: { strategy, markets: { BTC: rules } },
  guards: { on_trip: 'flatten' },
  budgetMicros: null,
}
const position: OpenPosition = {
  isLong: true,
  sizeUnits: 1_000n,
  costMicros: 1_000_000_000n,
  leverage: 1,
  isCross: false,
  openedMs,
  targetFromMs: openedMs,
  feesMicros: 0n,
  fundingMicros: 0n,
}
const order: OrderIntent = {
  asset: 'BTC',
  side: 'sell',
  order_type: 'market',
  size: '0.01',
  reduce_only: true,
}
const flat = openRun(1_000_000_000n, dayEndsMs)
const holding = {
  ...flat,
  account: { ...flat.account, positions: new Map([['BTC', position]]) },
  marks: new Map([['BTC', 10_000_000_000_000n]]),
}

const heldBy = (run: typeof flat) => ({ ...run, account: holding.account, marks: holding.marks })
type Look = {
  run?: typeof flat
  mode?: StrategyMode
  atMs?: number
  failedExit?: FailedExit | null
  hasLeft?: boolean
}
function reasonOf({
  run = holding,
  mode = 'paper',
  atMs = openedMs + 1_000,
  failedExit = null,
  hasLeft = false,
}: Look) {
  const state = stateOf(run, atMs, config)
  return exitDue(
    { run, mode },
    {
      state: hasLeft ? { ...state, positions: {} } : state,
      terms: { config, timezone: 'America/New_York' },
      endState: { failedExit },
      dayEndOf: (_timezone, atMs) => (atMs < dayEndsMs ? dayEndsMs : dayEndsMs + 86_400_000),
    },
  )
}

const failed = (reason: string, count = 1): FailedExit => ({ reason, endedMs: openedMs, count })
const after = (ms: number) => openedMs + ms

test('an exit that has failed is begun again while something is open that can be closed', () => {
  const [failedExit, atMs] = [failed('disabled'), after(30_000)]
  assert.equal(reasonOf({}), undefined)
  assert.equal(reasonOf({ failedExit, atMs: atMs - 1 }), undefined)
  assert.equal(reasonOf({ failedExit, atMs }), 'disabled')
  const ordered = { ...holding, pending: [order] }
  assert.equal(reasonOf({ failedExit, atMs, run: ordered }), undefined)
  // The exit of a live account begins, and waits in the market of the order alone.
  assert.equal(reasonOf({ failedExit, atMs, run: ordered, mode: 'live' }), 'disabled')
  assert.equal(reasonOf({ failedExit, atMs, run: flat }), undefined)
  assert.equal(reasonOf({ failedExit, atMs, hasLeft: true }), undefined)
  assert.equal(reasonOf({ failedExit, atMs: dayEndsMs - 60_000 }), 'day_ends')
})

test('an exit that fails again and again for one cause is begun after growing pauses', () => {
  const pauses = [1, 2, 3, 4, 5, 6].map((count) => {
    const failedExit = failed('disabled', count)
    return [30, 60, 120, 240, 300].find(
      (seconds) => reasonOf({ failedExit, atMs: after(seconds * 1_000) }) !== undefined,
    )
  })
  assert.deepEqual(pauses, [30, 60, 120, 240, 300, 300])
})

test('what the end of a day closes is tried again at once, then each minute, and at once for another cause', () => {
  const endedMs = dayEndsMs - 240_000
  const pauses = [1, 2, 3, 6].map((count) =>
    [0, 30, 60, 120].find((seconds) => {
      const failedExit = { reason: 'day_ends', endedMs, count }
      return reasonOf({ failedExit, atMs: endedMs + seconds * 1_000 }) === 'day_ends'
    }),
  )
  assert.deepEqual(pauses, [0, 30, 60, 60])
  assert.equal(reasonOf({ failedExit: { reason: 'disabled', endedMs, count: 6 }, atMs: endedMs }), 'day_ends')
})

test('only failed exits of one cause count together', () => {
  const endedAt = new Date(openedMs)
  const exit = { isFailedExit: true, reason: 'disabled', code: 'venue_rejected', endedAt }
  const countOf = (...runs: Parameters<typeof failedExitOf>[0]) => failedExitOf(runs)?.count
  assert.equal(countOf(exit, exit, exit), 3)
  assert.equal(countOf(exit, { ...exit, code: 'unavailable' }, exit), 1)
  assert.equal(countOf(exit, { ...exit, reason: 'day_ends' }, exit), 1)
  assert.equal(countOf(exit, { ...exit, isFailedExit: false }, exit), 1)
  assert.equal(countOf({ ...exit, isFailedExit: false }, exit), undefined)
  assert.equal(countOf(), undefined)
})

test('a day trade ends with its day, also where nobody has looked at it in the last minutes of the day', () => {
  const nextDay = heldBy(openRun(1_000_000_000n, dayEndsMs + 86_400_000))
  assert.equal(reasonOf({ atMs: dayEndsMs - 5 * 60_000 - 1 }), undefined)
  assert.equal(reasonOf({ atMs: dayEndsMs - 5 * 60_000 }), 'day_ends')
  assert.equal(reasonOf({ atMs: dayEndsMs, run: nextDay }), 'day_ends')
  assert.equal(reasonOf({ atMs: dayEndsMs + 3_600_000, run: nextDay, hasLeft: true }), undefined)
})
