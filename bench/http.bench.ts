/** P1, P2, P3: the cost of HTTP, compared with node:http and with the bare statements. */

import { fork } from 'node:child_process'
import { join } from 'node:path'
import { eventually, http, launch, newAgent } from '../test/harness/gateway.ts'
import {
  cpuMsOf,
  createEnvironment,
  createLoadGenerator,
  type LoadResult,
  type LoadSpec,
  startServer,
  unlimited,
} from './support/environment.ts'
import { median, report } from './support/measure.ts'

const runs = 5
const forMs = 2_000
const width = 32
const poolMax = 20

await using environment = await createEnvironment()
const databaseUrl = await environment.newDatabase('http')
await using gateway = await launch({
  env: {
    ...(await environment.world()),
    ...unlimited,
    DATA_DIR: environment.newFolder('gateway'),
    DATABASE_URL: databaseUrl,
    DATABASE_POOL: String(poolMax),
  },
})
const agents = await Promise.all(Array.from({ length: width }, () => newAgent(gateway.url)))
const tokens = agents.map(({ token }) => token)
const me = await Promise.all(
  agents.map(({ token }) =>
    http<{ user_id: string }>(`${gateway.url}/v1/user`, { headers: { authorization: `Bearer ${token}` } }),
  ),
)
const users = me.map(({ body }) => body.user_id)
await eventually(
  async () => {
    const { body } = await http<{ checks: { runner: { queue_depth: number } } }>(`${gateway.url}/health`)
    return body.checks.runner.queue_depth === 0 ? true : undefined
  },
  'the new users have their faucet grants',
  60_000,
)

await using loadGenerator = createLoadGenerator()
const textOf = async (path: string) => JSON.stringify((await http(gateway.url + path)).body)
await using rawHealth = await startServer('raw-server.ts', [await textOf('/health')])
await using rawChains = await startServer('raw-server.ts', [await textOf('/v1/chains')])
const statements = fork(
  join(import.meta.dirname, 'support/credits-server.ts'),
  [databaseUrl, String(poolMax), ...users],
  { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
)
const bare = () =>
  new Promise<LoadResult>((resolve) => {
    statements.once('message', resolve)
    statements.send({ width, forMs })
  })

type Measured = LoadResult & { cpuUs: number }
const measureCpu = async (pid: number, run: () => Promise<LoadResult>): Promise<Measured> => {
  const before = cpuMsOf(pid) ?? Number.NaN
  const hits = await run()
  return { ...hits, cpuUs: (((cpuMsOf(pid) ?? Number.NaN) - before) * 1_000) / hits.count }
}
const ours = (path: string, more: Partial<LoadSpec> = {}) =>
  measureCpu(gateway.pid, () => loadGenerator.run({ url: gateway.url + path, width, forMs, ...more }))
const raw = ({ url, pid }: { url: string; pid: number }) =>
  measureCpu(pid, () => loadGenerator.run({ url, width, forMs }))

const pairs = {
  health: { ours: () => ours('/health'), base: () => raw(rawHealth) },
  chains: { ours: () => ours('/v1/chains'), base: () => raw(rawChains) },
  credits: { ours: () => ours('/v1/credits', { tokens }), base: () => measureCpu(statements.pid!, bare) },
}
type Name = keyof typeof pairs
const names = Object.keys(pairs) as Name[]
const found = Object.fromEntries(
  names.map((name) => [name, { ours: [] as Measured[], base: [] as Measured[] }]),
) as Record<Name, { ours: Measured[]; base: Measured[] }>
const alone = { open: [] as number[], known: [] as number[] }

for (const name of ['health', 'chains'] as const) {
  await pairs[name].ours()
  await pairs[name].base()
}
// One name after the other: the gateway slows callers down while several are busy, and one that is alone never.
for (const name of names)
  for (let run = 0; run < runs; run++) {
    found[name].ours.push(await pairs[name].ours())
    found[name].base.push(await pairs[name].base())
  }
for (let run = 0; run < runs; run++) {
  // One at a time, so that a queue does not hide the cost of a credential.
  alone.open.push((await ours('/v1/chains', { width: 1, forMs: 1_000 })).p50Us)
  alone.known.push((await ours('/v1/chains', { width: 1, forMs: 1_000, tokens })).p50Us)
}

const round = (values: number[], digits = 3) => Number(median(values).toPrecision(digits))
const annexOf = ({ ours: mine, base }: { ours: Measured[]; base: Measured[] }) => ({
  ours_per_second: round(mine.map(({ perSecond }) => perSecond)),
  baseline_per_second: round(base.map(({ perSecond }) => perSecond)),
  ours_cpu_us: round(mine.map(({ cpuUs }) => cpuUs)),
  baseline_cpu_us: round(base.map(({ cpuUs }) => cpuUs)),
  ours_p99_ms: round(mine.map(({ p99Us }) => p99Us / 1_000)),
})
const ratiosOf = ({ ours: mine, base }: { ours: Measured[]; base: Measured[] }) =>
  mine.map(({ perSecond }, run) => perSecond / base[run]!.perSecond)

report({
  id: 'P1',
  name: 'GET /health per second, to node:http (32 connections)',
  goal: '>= 0.75',
  ratios: ratiosOf(found.health),
  met: (ratio) => ratio >= 0.75,
  annex: annexOf(found.health),
})
report({
  id: 'P2',
  name: 'GET /v1/chains per second, to node:http (32 connections)',
  goal: '>= 0.60',
  ratios: ratiosOf(found.chains),
  met: (ratio) => ratio >= 0.6,
  annex: annexOf(found.chains),
})
report({
  id: 'P3',
  name: 'GET /v1/credits with a token, to its statements without HTTP',
  goal: '>= 0.30',
  ratios: ratiosOf(found.credits),
  met: (ratio) => ratio >= 0.3,
  annex: annexOf(found.credits),
})
report({
  id: 'P3a',
  name: 'cost of a token in the p50 of a public read',
  goal: '<= 30 us',
  unit: 'us',
  ratios: alone.known.map((us, run) => us - alone.open[run]!),
  met: (us) => us <= 30,
  annex: { without_us: round(alone.open), with_us: round(alone.known) },
})
statements.kill('SIGKILL')
