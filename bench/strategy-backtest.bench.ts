/**
 * P27: a backtest of 30 days of minutes in its thread: the time, the memory, and the longest time for which the event loop
 * of the gateway stalls meanwhile.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { createBacktests } from '#engines/backtests/backtests.ts'
import type { Condition } from '#market/strategies/strategy.ts'
import { columnWalk, configOf, midnights, minuteMs } from '../test/market/strategy-walk.ts'
import { report } from './support/measure.ts'

const runs = 5
const msMax = 2_000
const mibMax = 128
const stallMsMax = 20
const minutes = columnWalk({ seed: 5, count: 43_200 + 1_000 })
const fromMs = minutes.startMs[1_000]!
const zero = { value: '0' }
const enter: Condition[] = [
  { left: 'adx_14', is: 'above', right: { value: '20' } },
  { left: 'macd_histogram', is: 'crosses_above', right: zero },
]
const input = {
  config: {
    decision: configOf({
      type: 'condition' as const,
      asset: 'BTC',
      side: 'long' as const,
      order_usd: '900',
      leverage: 3,
      is_cross: true,
      slippage_bps: 50,
      enter_if: enter,
      exit_if: [{ left: 'macd_histogram', is: 'crosses_below', right: zero }],
      stop_atr_pct: 300,
      target_atr_pct: 500,
    }),
    guards: { max_loss_usd: '900', on_trip: 'flatten' as const },
    budgetMicros: null,
  },
  assets: { BTC: { signal: minutes, execution: minutes, funding: [] } },
  fromMs,
  toMs: minutes.startMs.at(-1)! + minuteMs,
  dayEnds: midnights(fromMs, 32),
  initialMicros: 1_000_000_000n,
  slippagePpm: 500n,
}
const mib = () => process.memoryUsage.rss() / 1_048_576

const backtests = createBacktests()
const times: number[] = []
const growths: number[] = []

/** The longest time for which the event loop stalls while something runs. */
async function stallMsOf(run: () => Promise<unknown>): Promise<number> {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  await run()
  delays.disable()
  return delays.max / 1e6
}

const before = mib()
const stalls: number[] = []
const idleStalls: number[] = []
for (let run = 0; run < runs; run++) {
  let peakMib = 0
  const samples = setInterval(() => {
    peakMib = Math.max(peakMib, mib() - before)
  }, 5)
  const startedAt = performance.now()
  const job = { input, seed: 1, title: 'Backtest', subtitle: '30 days of minutes' }
  stalls.push(await stallMsOf(() => backtests.run('bench', job)))
  times.push(performance.now() - startedAt)
  clearInterval(samples)
  growths.push(peakMib)
  idleStalls.push(await stallMsOf(() => delay(2_000)))
}
report({
  id: 'P27',
  name: 'a backtest of 30 days of minutes, with its picture',
  goal: `<= ${msMax} ms`,
  unit: 'ms',
  ratios: times,
  met: (value) => value <= msMax,
})
report({
  id: 'P27a',
  name: 'what the process grows by meanwhile',
  goal: `<= ${mibMax} MiB`,
  unit: 'MiB',
  ratios: growths,
  met: (value) => value <= mibMax,
})
report({
  id: 'P27b',
  name: 'the longest stall of the event loop meanwhile',
  goal: `<= ${stallMsMax} ms`,
  unit: 'ms',
  ratios: stalls,
  met: (value) => value <= stallMsMax,
  annex: { idle_ms: idleStalls },
})
