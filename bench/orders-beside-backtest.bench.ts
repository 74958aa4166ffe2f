/**
 * P27c: orders while backtests of 30 days of minutes run for somebody else: their p99, beside that of the same orders
 * alone.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Agent, bearer, http, launch, newAgent } from '../test/harness/gateway.ts'
import { createEnvironment, unlimited } from './support/environment.ts'
import { load, median, percentile, report } from './support/measure.ts'

const runs = 5
const ordersPerRun = 100
const warmUp = 150
const ratioMax = 2
const dayMs = 86_400_000

await using environment = await createEnvironment()
const world = await environment.world()
const venue = async (path: string, body: object): Promise<void> => {
  const url = `${environment.control()}/venues/hyperliquid${path}`
  const { status } = await http(url, { method: 'POST', body })
  if (status !== 200) throw new Error(`${path}: ${status}`)
}
await venue('/settings', { walking: false })
await venue('/price', { coin: 'BTC', price: 100_000 })
await using gateway = await launch({
  env: {
    ...world,
    ...unlimited,
    DATA_DIR: environment.newFolder('gateway'),
    DATABASE_URL: await environment.newDatabase('beside'),
    FAUCET_URL: 'off',
    POLICY_DAY_USD_MAX: '100000000',
  },
  readyMsMax: 60_000,
})

const call = async <B>(agent: Agent, path: string, body: object): Promise<B> => {
  const reply = await http<B>(`${gateway.url}${path}`, {
    method: 'POST',
    headers: bearer(agent),
    body,
    timeoutMs: 90_000,
  })
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}
const [trader, tester] = [await newAgent(gateway.url), await newAgent(gateway.url)]
const { body } = await http<{ wallets: { address: string; chain_type: string }[] }>(
  `${gateway.url}/v1/wallets`,
  { headers: bearer(trader) },
)
const user = body.wallets.find(({ chain_type }) => chain_type === 'evm')!.address
await venue('/credit', { user, coin: 'perp', amount: '1000000' })
await call(trader, '/v1/perp/setup?wait=true', {})

const order = async (n: number) => {
  const side = n % 2 === 0 ? 'long' : 'short'
  const task = await call<{ outcome: string }>(trader, '/v1/perp/open?wait=true', {
    asset: 'BTC',
    side,
    size: '0.001',
  })
  if (task.outcome !== 'executed') throw new Error(JSON.stringify(task))
}
const zero = { left: 'macd_histogram', is: 'crosses_above', right: '0' }
const today = Math.floor(Date.now() / dayMs) * dayMs
/** What a person pays for once, and runs again and again. */
const backtest = async (): Promise<number> => {
  const startedAt = performance.now()
  const made = await call<{ status: string; result: { decisions: number } | null; error: object | null }>(
    tester,
    '/v1/strategies/backtest?wait=true&timeout=60',
    {
      strategy: {
        type: 'condition',
        asset: 'BTC',
        interval: '1m',
        order_notional_usd: '900',
        leverage: 3,
        enter_if: [{ left: 'adx_14', is: 'above', right: '20' }, zero],
        exit_if: [{ ...zero, is: 'crosses_below' }],
        stop_atr: '3',
        target_atr: '5',
      },
      from: new Date(today - 30 * dayMs).toISOString(),
      to: new Date(today).toISOString(),
    },
  )
  if ((made.result?.decisions ?? 0) < 40_000) throw new Error(JSON.stringify(made).slice(0, 500))
  return performance.now() - startedAt
}

await load(warmUp, 1, order)
await backtest()
const p99 = { alone: [] as number[], beside: [] as number[] }
const backtestMs: number[] = []
for (let run = 0; run < runs; run++) {
  p99.alone.push(percentile((await load(ordersPerRun, 1, order)).ms, 0.99))
  let isOver = false
  const others = (async () => {
    while (!isOver) backtestMs.push(await backtest())
  })()
  await delay(50)
  p99.beside.push(percentile((await load(ordersPerRun, 1, order)).ms, 0.99))
  isOver = true
  await others
}
report({
  id: 'P27c',
  name: 'p99 of orders while backtests of 30 days of minutes run, beside orders alone',
  goal: `<= ${ratioMax}`,
  ratios: p99.beside.map((ms, run) => ms / p99.alone[run]!),
  met: (ratio) => ratio <= ratioMax,
  annex: {
    alone_p99_ms: median(p99.alone),
    beside_p99_ms: median(p99.beside),
    backtest_ms: median(backtestMs),
    backtests: backtestMs.length,
  },
})
