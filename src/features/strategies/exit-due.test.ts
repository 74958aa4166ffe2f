import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OpenPosition } from '#market/strategies/account.ts'
import type { FarmingConfig, MarketRules, OrderIntent } from '#market/strategies/strategy.ts'
import { openRun, type RunConfig, stateOf } from '#market/strategies/strategy-run.ts'
import { exitDue } from './exit-due.ts'

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
type Look = { run?: typeof flat; atMs?: number; unfinishedExit?: string | null; hasLeft?: boolean }
function reasonOf({ run = holding, atMs = openedMs + 1_000, unfinishedExit = null, hasLeft = false }: Look) {
  const state = stateOf(run, atMs, config)
  return exitDue(
    { run },
    {
      state: hasLeft ? { ...state, positions: {} } : state,
      terms: { config, timezone: 'America/New_York' },
      endState: { unfinishedExit },
      dayEndOf: (_timezone, atMs) => (atMs < dayEndsMs ? dayEndsMs : dayEndsMs + 86_400_000),
    },
  )
}

test('an exit that has failed is begun again while something is open that can be closed', () => {
  assert.equal(reasonOf({}), undefined)
  assert.equal(reasonOf({ unfinishedExit: 'disabled' }), 'disabled')
  assert.equal(reasonOf({ unfinishedExit: 'disabled', run: { ...holding, pending: [order] } }), undefined)
  assert.equal(reasonOf({ unfinishedExit: 'disabled', run: flat }), undefined)
  assert.equal(reasonOf({ unfinishedExit: 'disabled', hasLeft: true }), undefined)
  assert.equal(reasonOf({ unfinishedExit: 'disabled', atMs: dayEndsMs - 60_000 }), 'day_ends')
})

test('a day trade ends with its day, also where nobody has looked at it in the last minutes of the day', () => {
  const nextDay = heldBy(openRun(1_000_000_000n, dayEndsMs + 86_400_000))
  assert.equal(reasonOf({ atMs: dayEndsMs - 5 * 60_000 - 1 }), undefined)
  assert.equal(reasonOf({ atMs: dayEndsMs - 5 * 60_000 }), 'day_ends')
  assert.equal(reasonOf({ atMs: dayEndsMs, run: nextDay }), 'day_ends')
  assert.equal(reasonOf({ atMs: dayEndsMs + 3_600_000, run: nextDay, hasLeft: true }), undefined)
})
