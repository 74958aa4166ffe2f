/** P12: resident memory after the start and under half of the maximum load of the machine. BENCH=long: 10 minutes. */
import { setTimeout as delay } from 'node:timers/promises'
import { launch, newAgent } from '../test/harness/gateway.ts'
import {
  createEnvironment,
  createLoadGenerator,
  residentMibOf,
  startServer,
  unlimited,
} from './support/environment.ts'
import { report } from './support/measure.ts'

const isLong = process.env.BENCH === 'long'
const loadMs = isLong ? 600_000 : 60_000
const idleMs = 10_000
const width = 16
const sampleMs = 500

await using environment = await createEnvironment()
await using gateway = await launch({
  env: {
    ...(await environment.world()),
    ...unlimited,
    DATA_DIR: environment.newFolder('gateway'),
    DATABASE_URL: await environment.newDatabase('memory'),
  },
})
await using fastify = await startServer('fastify-server.ts')
await using loadGenerator = createLoadGenerator()
await delay(idleMs)
const mib = (pid: number) => residentMibOf(pid) ?? Number.NaN
const idle = { ours: mib(gateway.pid), bare: mib(fastify.pid) }

const agents = await Promise.all(Array.from({ length: width }, () => newAgent(gateway.url)))
const tokens = agents.map(({ token }) => token)
// Tokens live for a quarter of an hour, longer than the long run.
const credits = { url: `${gateway.url}/v1/credits`, width, tokens }
const capacity = (await loadGenerator.run({ ...credits, forMs: 3_000 })).perSecond

const samples: { minutes: number; mib: number }[] = []
const startedMs = performance.now()
const sampling = setInterval(() => {
  samples.push({ minutes: (performance.now() - startedMs) / 60_000, mib: mib(gateway.pid) })
}, sampleMs)
const [{ perSecond }] = await Promise.all([
  loadGenerator.run({ ...credits, forMs: loadMs, perSecond: capacity / 2 }),
  (async () => {
    await using beside = createLoadGenerator()
    await beside.run({ url: `${fastify.url}/health`, width, forMs: loadMs, perSecond: capacity / 2 })
  })(),
])
clearInterval(sampling)
const loaded = { ours: mib(gateway.pid), bare: mib(fastify.pid) }

/** Of the second half: in the first one the heap reaches its size. */
function slope(): number {
  const late = samples.slice(Math.floor(samples.length / 2))
  const mean = (select: (sample: (typeof late)[number]) => number) =>
    late.reduce((sum, s) => sum + select(s), 0) / late.length
  const at = mean(({ minutes }) => minutes)
  const size = mean(({ mib: value }) => value)
  const over = late.reduce((sum, s) => sum + (s.minutes - at) * (s.mib - size), 0)
  return over / late.reduce((sum, s) => sum + (s.minutes - at) ** 2, 0)
}

report({
  id: 'P12',
  name: 'resident memory, idle',
  goal: '<= 130 MiB',
  unit: 'MiB',
  ratios: [idle.ours],
  met: (value) => value <= 130,
  annex: { bare_fastify_mib: idle.bare, to_bare_fastify: idle.ours / idle.bare },
})
report({
  id: 'P12a',
  name: `resident memory after ${loadMs / 60_000} min at half load`,
  goal: '<= 220 MiB',
  unit: 'MiB',
  ratios: [loaded.ours],
  met: (value) => value <= 220,
  annex: {
    bare_fastify_mib: loaded.bare,
    to_bare_fastify: loaded.ours / loaded.bare,
    requests_per_second: perSecond,
    growth_mib_per_minute: slope(),
  },
})
// A minute is too short to distinguish growth from a heap that reaches its size.
if (isLong)
  report({
    id: 'P12b',
    name: 'growth of resident memory at half load',
    goal: '< 0.5 MiB/min',
    unit: 'MiB/min',
    ratios: [slope()],
    met: (value) => value < 0.5,
  })
