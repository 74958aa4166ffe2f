import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BacktestJob } from '#engines/backtests/backtest-message.ts'
import { createBacktests } from '#engines/backtests/backtests.ts'
import { reportOf } from '#market/strategies/backtest-report.ts'
import { type SimulationInput, simulateStrategy } from '#market/strategies/simulation.ts'
import { columnWalk, configOf, midnights, minuteMs } from './strategy-walk.ts'

const minutes = columnWalk({ seed: 21, count: 4_000 })
const fromMs = minutes.startMs[1_000]!
const input: SimulationInput = {
  config: {
    decision: configOf({
      type: 'condition',
      asset: 'BTC',
      side: 'long',
      order_usd: '900',
      leverage: 3,
      is_cross: true,
      slippage_bps: 50,
      enter_if: [{ left: 'rsi_14', is: 'below', right: { value: '30' } }],
      stop_atr_pct: 300,
      target_atr_pct: 500,
    }),
    guards: { max_loss_usd: '200', on_trip: 'flatten' },
    budgetMicros: null,
  },
  assets: { BTC: { signal: minutes, execution: minutes, funding: [] } },
  fromMs,
  toMs: minutes.startMs.at(-1)! + minuteMs,
  dayEnds: midnights(fromMs, 4),
  initialMicros: 1_000_000_000n,
  slippagePpm: 500n,
}
const job: BacktestJob = { input, seed: 7, title: 'A condition on BTC', subtitle: 'Three days of minutes' }

test('a backtest in a thread finds what the same one finds here, with its files', async () => {
  const { report, files } = await createBacktests().run('a', job)
  const here = simulateStrategy(input)
  assert.deepEqual(report, JSON.parse(JSON.stringify(reportOf(here, input, 7))))
  assert.ok(report.trades > 3)
  const lines = Buffer.from(files.tradesCsv).toString().trim().split('\r\n')
  assert.equal(lines.length, report.trades + 1)
  assert.match(Buffer.from(files.reportMarkdown).toString(), /^# A condition on BTC\nThree days of minutes$/m)
  const decisions = Buffer.from(files.decisionLines!).toString().trim().split('\n')
  assert.equal(decisions.length, here.decisions.length)
  assert.equal(Buffer.from(files.equityPng).subarray(1, 4).toString(), 'PNG')
})

test('a backtest ends with the work that asked for it, and the next one runs', async () => {
  const backtests = createBacktests()
  const controller = new AbortController()
  const reason = new Error('the work has ended')
  const running = [1, 2, 3].map(() => backtests.run('a', job, controller.signal))
  controller.abort(reason)
  for (const each of await Promise.allSettled(running))
    assert.deepEqual([each.status, 'reason' in each && each.reason], ['rejected', reason])
  assert.ok((await backtests.run('b', job)).report.decisions > 0)
})
