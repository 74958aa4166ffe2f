/** P17, P18: the durable engine on a three-step task, compared with DBOS and with bare commits on the same database. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DBOS } from '@dbos-inc/dbos-sdk'
import pg from 'pg'
import type { Caller } from '#kernel/contract/caller.ts'
import { group, implement, type Operation, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { embeddedPostgres } from '#store/embedded-server.ts'
import { openTestCore } from '../test/harness/core.ts'
import { load, median, report } from './support/measure.ts'

const runs = 5
const tasksPerRun = 1_500
const width = 16
const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'))
const server = await embeddedPostgres({ dataDir: folder, settings: { max_connections: '120' } })
const core = await openTestCore({
  databaseUrl: server.url,
  config: { DATABASE_POOL: width, LEASE_MS: 5_000 },
  overrides: { claimPollMs: 500 },
})
const contract = group('bench', 'Operations of a bench.', {
  three: task('POST /bench/three', {
    summary: 'Three steps that do nothing',
    access: 'trade',
    waitSeconds: 60,
    body: T.Object({ n: T.Integer() }),
    output: TaskResponse,
  }),
})
const operations = implement(contract, {
  three: {
    admit: async () => ({ data: {}, first: 'one' }),
    steps: {
      one: async () => ({ next: 'two', data: { one: 1 } }),
      two: async () => ({ next: 'three', data: { two: 2 } }),
      three: async () => ({ end: 'completed', outcome: 'executed', result: { three: 3 } }),
    },
  },
})
const engine = core.taskEngine.createRuntime(operations, [])
engine.start()
const callers = Array.from({ length: 64 }, (): Caller => {
  const userId = uuidv7(new Date(), systemRandom)
  return { userId, agentId: userId, scheme: 'keypair', scopes: new Set() }
})
const request = { id: 'bench', address: '127.0.0.1', signal: new AbortController().signal }
const ours = (n: number) =>
  engine.invoke({
    operation: operations[0] as Operation,
    input: { n },
    caller: callers[n % 64]!,
    options: { wait: true, timeoutMs: 60_000 },
    request,
  })

await core.db.query('create database dbos_bench')
const dbosPool = new pg.Pool({ connectionString: server.url.replace('/portico', '/dbos_bench'), max: width })
DBOS.setConfig({ name: 'bench', systemDatabasePool: dbosPool, logLevel: 'error' })
const three = DBOS.registerWorkflow(
  async (n: number) => {
    await DBOS.runStep(async () => n + 1, { name: 'one' })
    await DBOS.runStep(async () => n + 2, { name: 'two' })
    return DBOS.runStep(async () => n + 3, { name: 'three' })
  },
  { name: 'three' },
)
await DBOS.launch()

/** A bare commit: the minimum cost of any durable step. */
await core.db.query('create table bare (id uuid primary key, body jsonb not null)')
const barePool = new pg.Pool({ connectionString: server.url, max: 32 })
const bare = () =>
  barePool.query({
    name: 'bare',
    text: 'insert into bare values ($1, $2)',
    values: [uuidv7(new Date(), systemRandom), '{"a":1}'],
  })

await load(300, width, ours)
await load(300, width, three)
await load(500, 32, bare)

const rates = { ours: [] as number[], dbos: [] as number[], bare: [] as number[] }
const p50 = { ours: [] as number[], dbos: [] as number[] }
for (let run = 0; run < runs; run++) {
  rates.ours.push((await load(tasksPerRun, width, ours)).perSecond)
  rates.dbos.push((await load(tasksPerRun / 3, width, three)).perSecond)
  rates.bare.push((await load(tasksPerRun * 3, 32, bare)).perSecond)
  p50.ours.push(median((await load(150, 1, ours)).ms))
  p50.dbos.push(median((await load(150, 1, three)).ms))
}
const ratio = (a: number[], b: number[]) => a.map((value, run) => value / b[run]!)
report({
  id: 'P17',
  name: 'three-step tasks per second, to DBOS (16 in flight)',
  goal: '>= 2.5',
  ratios: ratio(rates.ours, rates.dbos),
  met: (value: number) => value >= 2.5,
  annex: { ours_per_second: median(rates.ours), dbos_per_second: median(rates.dbos) },
})
report({
  id: 'P17b',
  name: 'p50 of one three-step task, to DBOS',
  goal: '<= 1',
  ratios: ratio(p50.ours, p50.dbos),
  met: (value: number) => value <= 1,
  annex: { ours_ms: median(p50.ours), dbos_ms: median(p50.dbos) },
})
report({
  id: 'P18',
  name: 'three-step tasks per bare commit (32 connections)',
  goal: '>= 0.10',
  ratios: ratio(rates.ours, rates.bare),
  met: (value: number) => value >= 0.1,
  annex: { bare_per_second: median(rates.bare) },
})

await DBOS.shutdown()
await dbosPool.end()
await core[Symbol.asyncDispose]()
await barePool.end()
await server.close()
rmSync(folder, { recursive: true, force: true })
