/** Every decision of a run, live and on paper, is made again from its record alone, byte by byte. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { replayDecisions } from '../harness/replayed-decisions.ts'
import { plantCandles, pullbackOfUptrend } from './planted-candles.ts'
import { startReconciler } from './reconcilers.ts'
import { addStrategy, decisionsOf, endOfRun, runStrategy, type Strategy } from './strategy-rows.ts'
import { createVenueApp, type User, type VenueApp } from './venue-app.ts'

const [btc, eth] = [100_000, 3_000]
const condition = {
  asset: 'ETH',
  enter_if: [{ left: 'sma_20', is: 'above', right: '1' }],
  exit_if: [{ left: 'rsi_14', is: 'below', right: '1' }],
  order_notional_usd: '100',
  leverage: 2,
  stop_atr: '3',
}

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

  const exit = async (strategy: Strategy) => {
    const { startExit } = app.main.features.strategies!
    const id = await app.main.transactions.run((tx) =>
      startExit(tx, { strategyId: strategy.id, mode: strategy.mode }, 'disabled'),
    )
    app.main.taskEngine.announceQueued()
    await endOfRun(app.main, id!)
  }
  /** An entry, a run that finds it open, and an exit. */
  const walk = async (user: User, fields: Parameters<typeof addStrategy>[2]) => {
    const strategy = await addStrategy(app.main.db, user, { budgetUsd: '1000', ...fields })
    await runStrategy(app.main, strategy)
    await runStrategy(app.main, strategy)
    await exit(strategy)
    const decisions = await decisionsOf(app.main.db, strategy)
    const replayed = await replayDecisions(app.main.db, app.main.features.strategies!.candles, strategy.id)
    assert.equal(replayed, decisions.length)
    assert.ok(replayed >= 4, `${replayed} decisions`)
    return decisions.map(({ decision }) => JSON.parse(decision).action)
  }

  for (const mode of ['live', 'paper'] as const)
    test(`are made again ${mode === 'live' ? mode : 'on paper'}, for every type that enters`, async () => {
      const farming = { asset: 'BTC', order_notional_usd: '300', leverage: 3 }
      const dca = { asset: 'ETH', amount_usd: '50' }
      const rebalance = { targets: [{ asset: 'ETH', share_pct: '20' }] }
      for (const [type, config] of [
        ['day_trade_farming', farming],
        ['condition', condition],
        ['dca', dca],
        ['rebalance', rebalance],
      ] as const) {
        const actions = await walk(await app.trader(), {
          type,
          config,
          mode,
          guards: { max_loss_usd: '500' },
        })
        assert.ok(
          actions.includes('exit') && actions.some((each) => each === 'enter' || each === 'adjust'),
          type,
        )
      }
    })
})
