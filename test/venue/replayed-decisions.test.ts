/**
 * The decisions of runs live, on paper and in a backtest are the same bytes, and each is made again from its record alone.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { toMicros } from '#kernel/money/money.ts'
import { candleSpanMs, candleSpans } from '#market/candle.ts'
import type { DecisionInputs } from '#market/strategies/decision-record.ts'
import { simulateStrategy } from '#market/strategies/simulation.ts'
import type { StrategyDecisionRow } from '#store/tables/strategies.ts'
import { eventually } from '../harness/gateway.ts'
import { replayDecisions } from '../harness/replayed-decisions.ts'
import { plantCandles, pullbackOfUptrend } from './planted-candles.ts'
import { startReconciler } from './reconcilers.ts'
import { addStrategy, decisionsOf, endOfRun, runStrategy, type Strategy } from './strategy-rows.ts'
import { createVenueApp, type VenueApp } from './venue-app.ts'

type Walk = Pick<Parameters<typeof addStrategy>[2], 'type' | 'config'>
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

const [btc, eth] = [100_000, 3_000]
const condition = {
  asset: 'ETH',
  enter_if: [{ left: 'sma_20', is: 'above', right: '1' }],
  exit_if: [{ left: 'rsi_14', is: 'below', right: '1' }],
  order_notional_usd: '100',
  leverage: 2,
  stop_atr: '3',
}
const configs = {
  day_trade_farming: { asset: 'BTC', order_notional_usd: '300', leverage: 3 },
  condition,
  dca: { asset: 'ETH', amount_usd: '50' },
  rebalance: { targets: [{ asset: 'ETH', share_pct: '20' }] },
}
/** What a strategy begins with in every mode. */
const startUsd = '1000'
const maxLossUsd = '500'

describe('the decisions of runs', () => {
  let app: VenueApp
  const parts = new AsyncDisposableStack()
  before(async () => {
    app = await createVenueApp()
    parts.use(startReconciler(app, app.main, { tickMs: 200, tradingMs: 1_000, idleMs: 5_000 }))
    parts.use(app.main.features.strategies!.watch())
    for (const [coin, price] of [
      ['BTC', btc],
      ['ETH', eth],
    ] as const) {
      await app.price(coin, price)
      await eventually(async () => {
        const mid = Number((await app.main.venue!.client.mids()).get(coin))
        return Math.abs(mid / price - 1) < 0.001 ? true : undefined
      }, `the price of ${coin}`)
    }
    const flat = Array.from({ length: 1_010 }, (_, at) => eth * (1 + (at % 2 ? 0.001 : -0.001)))
    await plantCandles(app.main.db, { market: 'ETH', span: '1h', closes: flat, wick: eth * 0.004 })
    const pullback = {
      market: 'BTC',
      span: '15m',
      closes: pullbackOfUptrend(btc),
      wick: btc * 0.002,
    } as const
    await plantCandles(app.main.db, pullback)
  })
  after(async () => {
    await parts.disposeAsync()
    await app?.[Symbol.asyncDispose]()
  })

  const candles = () => app.main.features.strategies!.candles
  const exit = async (strategy: Strategy) => {
    const { startExit } = app.main.features.strategies!
    const id = await app.main.transactions.run((tx) =>
      startExit(tx, { strategyId: strategy.id, mode: strategy.mode }, 'disabled'),
    )
    app.main.taskEngine.announceQueued()
    await endOfRun(app.main, id!)
  }
  /** An entry, a run that finds it open, and an exit. */
  async function walk(mode: 'live' | 'paper', fields: Walk): Promise<StrategyDecisionRow[]> {
    const user = await app.trader()
    const guards = { max_loss_usd: maxLossUsd }
    const given = { ...fields, mode, guards, budgetUsd: startUsd, paperUsd: startUsd }
    const strategy = await addStrategy(app.main.db, user, given)
    await runStrategy(app.main, strategy)
    await runStrategy(app.main, strategy)
    await exit(strategy)
    const decisions = await decisionsOf(app.main.db, strategy)
    const replayed = await replayDecisions(app.main.db, candles(), strategy.id)
    assert.equal(replayed, decisions.length)
    assert.ok(replayed >= 4, `${replayed} decisions`)
    return decisions
  }

  /** The hash of the log of a backtest that ends with the close of a decision. */
  async function backtestOf({
    config,
    state,
    windows,
  }: DecisionInputs): Promise<{ log: string; endMs: number }> {
    const [asset, { end_ms: endMs, span_ms: spanMs }] = Object.entries(windows!)[0]!
    const span = candleSpans.find((each) => candleSpanMs[each] === spanMs)!
    const time = { fromMs: endMs - 1_001 * spanMs, toMs: endMs }
    const columns = await candles().columns({ market: asset, span }, time)
    const { logSha256, decided } = simulateStrategy({
      config: {
        decision: config,
        guards: { max_loss_usd: maxLossUsd, on_trip: 'flatten' },
        budgetMicros: toMicros(startUsd),
      },
      assets: { [asset]: { signal: columns, execution: columns, funding: [] } },
      fromMs: endMs - spanMs,
      toMs: endMs,
      dayEnds: [state.day_ends_ms],
      initialMicros: toMicros(startUsd),
      slippagePpm: 500n,
    })
    assert.equal(decided, 1)
    return { log: logSha256, endMs }
  }

  const endOf = ({ inputs }: StrategyDecisionRow) =>
    Object.values((inputs as DecisionInputs).windows!)[0]!.end_ms

  for (const [type, config] of Object.entries(configs))
    test(`are the same live, on paper and in a backtest, and are made again: ${type}`, async () => {
      let pair: [StrategyDecisionRow[], StrategyDecisionRow[]]
      // Where a candle closes between the two, they are made again.
      do
        pair = await Promise.all([
          walk('live', { type, config } as Walk),
          walk('paper', { type, config } as Walk),
        ])
      while (endOf(pair[0][0]!) !== endOf(pair[1][0]!))
      const [live, paper] = pair
      assert.equal(live[0]!.decision, paper[0]!.decision)
      const actionsOf = (rows: StrategyDecisionRow[]) =>
        rows.map(({ decision }) => JSON.parse(decision).action)
      const actions = actionsOf(live)
      assert.deepEqual(actions, actionsOf(paper))
      assert.ok(actions.includes('exit') && ['enter', 'adjust'].includes(actions[0]), actions.join())
      const { log, endMs } = await backtestOf(live[0]!.inputs as DecisionInputs)
      assert.equal(sha256(`${endMs} ${live[0]!.decision}\n`), log)
    })
})
