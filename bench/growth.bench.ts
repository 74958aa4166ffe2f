/**
 * P19: what requests and background work cost in a database of 5 million tasks and 15 million events, compared with one
 * of 2,000 tasks, which fill the same pages; both on one server, measured in turns. GROWTH_TASKS sets another size.
 * Prints the plans of the statements that ran. The full size takes about half an hour of an idle machine with two
 * processors, and 25 GB of disk while it runs.
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { retentionJobs } from '#compose/retention.ts'
import { readConfig } from '#config.ts'
import { createLedgerAudit } from '#durable/ledger/audit.ts'
import { readTaskGauges } from '#durable/upkeep/task-gauges.ts'
import { recentSpendings } from '#engines/venue/orders/pending-spends.ts'
import { fillHistory, orderHistory } from '#engines/venue/records/history.ts'
import { recentOrders } from '#engines/venue/records/order-store.ts'
import { earnTasksPage, positionsPage } from '#features/earn/store.ts'
import { policyStateOf } from '#features/policy/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { silentLog } from '#kernel/log.ts'
import type { TaskKind } from '#kernel/task/task.ts'
import { type Instance, openInstance } from '../test/harness/instance.ts'
import { createInstance, type EngineInstance } from './support/engine.ts'
import { createEnvironment } from './support/environment.ts'
import { grow, shares, sizeOf, vaultRef } from './support/growth-data.ts'
import { percentile, report } from './support/measure.ts'
import { type Plan, type PlanLog, recordStatements } from './support/plans.ts'

const tasks = Number(process.env.GROWTH_TASKS ?? 5_000_000)
const rounds = 5
const goal = 1.3
const expiredRows = 12_000

type Side = {
  name: 'small' | 'grown'
  engine: EngineInstance
  pool: pg.Pool
  joined: Instance['joined']
  users: string[]
  statements: PlanLog
}

const progress = (line: string) => process.stdout.write(`${line}\n`)
const kind: TaskKind = {
  kind: 'growth_noop',
  version: 1,
  priority: 1,
  steps: { end: async () => ({ end: 'completed', outcome: 'executed', result: {} }) },
}

await using environment = await createEnvironment({
  shared_buffers: '1GB',
  max_wal_size: '4GB',
  checkpoint_timeout: '30min',
  track_io_timing: 'on',
})

/** A run compares a fixed number of accounts; the small database has fewer, so that a measured one compares these. */
const slice = { accountsMax: 100, slicesMax: 1, rangesMax: 1, writersMsMax: 5_000 }

async function audit({ pool, transact: run }: EngineInstance, limits?: typeof slice): Promise<void> {
  const job = createLedgerAudit({ pool, run, log: silentLog, ...(limits && { limits }) })
  while (await job.runBatch());
}

async function openSide(name: Side['name'], count: number, parts: AsyncDisposableStack): Promise<Side> {
  const url = await environment.newDatabase(name)
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  parts.defer(() => pool.end())
  const startedMs = performance.now()
  const size = sizeOf(count)
  await grow(pool, size)
  const { rows } = await pool.query<{ size: string }>(
    'select pg_size_pretty(pg_database_size(current_database())) as size',
  )
  progress(
    `${name}: ${count} tasks, ${rows[0]?.size}, ${Math.round((performance.now() - startedMs) / 1000)} s`,
  )
  const { rows: users } = await pool.query<{ id: string }>(
    'select g_heavy(i) as id from generate_series(0, 1) i union all select g_light(i) from generate_series(0, 7) i',
  )
  const { joined } = parts.use(await openInstance({ databaseUrl: url }))
  const engine = parts.use(await createInstance(url, 8, async () => {}, { internal: [kind] }))
  // What was loaded is counted once, as the audits of its time would have done.
  await audit(engine)
  const statements = recordStatements(engine.pool)
  return { name, engine, pool, joined, users: users.map(({ id }) => id), statements }
}

const callerOf = (userId: string): Caller => ({
  userId,
  agentId: userId,
  scheme: 'keypair',
  scopes: new Set(),
})

type Operation = {
  id: string
  name: string
  /** Calls of one round. */
  calls: number
  prepare?: (side: Side) => Promise<unknown>
  call: (side: Side, userId: string, n: number) => Promise<unknown>
  /** Where the duration is that of some statements, and not of the call. */
  statement?: RegExp
}

/** Expired events and replies of a user that the measured calls do not use. */
const addExpired = ({ pool }: Side) =>
  pool.query(
    `with seq as (select coalesce(max(seq), 0) as last from user_event where user_id = md5('expired')::uuid),
       e as (insert into user_event (user_id, seq, type, body, at) select md5('expired')::uuid, last + n, 'old', '{}', now() - interval '8 days'
         from seq, generate_series(1, ${expiredRows}) n)
     insert into idempotency (user_id, key, operation, body_hash, at) select md5('expired')::uuid, gen_random_uuid()::text, 'old', '', now() - interval '31 days'
       from generate_series(1, ${expiredRows}) n`,
  )

/** Tasks that no instance has claimed yet, committed at once; their claims are measured. */
const enqueueDue = async ({ engine, users }: Side) => {
  await engine.transact(async (tx) => {
    for (let n = 0; n < 200; n++)
      await engine.taskEngine.enqueue(tx, {
        userId: users[n % users.length]!,
        kind,
        input: {},
        admission: { first: 'end', data: {} },
      })
  })
  // The claims of all of them, and a few that find nothing.
  await delay(1_500)
}

const page = { skip: 0, limit: 20 }
const config = readConfig({})
const history = { kind: 'perp' as const, symbol: undefined, before: undefined, limit: 50 }
const operations: Operation[] = [
  {
    id: 'P19a',
    name: 'acceptance of a money task',
    calls: 1_000,
    call: ({ engine }, userId, n) => engine.accept(callerOf(userId), n),
  },
  {
    id: 'P19b',
    name: 'acceptance to the answer of its waiter',
    calls: 500,
    call: ({ engine }, userId, n) => engine.wait(callerOf(userId), n, `wait-${performance.now()}-${n}`),
  },
  { id: 'P19c', name: 'statements of claims', calls: 2, call: enqueueDue, statement: /skip locked/ },
  {
    id: 'P19d',
    name: 'lists of tasks: all, by kind, by status',
    calls: 1_000,
    async call({ engine: { taskEngine } }, userId, n) {
      const filters = [
        {},
        { kind: 'perp_open' },
        { status: 'completed' as const },
        { status: 'running' as const },
      ]
      await taskEngine.tasks.list(userId, { ...page, ...filters[n % filters.length] })
    },
  },
  {
    id: 'P19e',
    name: 'pages of events, all and by type',
    calls: 1_000,
    async call({ engine: { taskEngine } }, userId, n) {
      const { last } = await taskEngine.events.bounds(userId)
      const after = last > 100n ? last - 100n : 0n
      await taskEngine.events.page(
        userId,
        after,
        { limit: 50 },
        n % 2 === 0 ? {} : { types: ['task.completed'] },
      )
    },
  },
  {
    id: 'P19f',
    name: 'histories of fills, orders and positions',
    calls: 1_000,
    call: ({ engine: { pool } }, userId, n) => {
      if (n % 3 === 0) return fillHistory(pool, { userId, ...history })
      if (n % 3 === 1) return orderHistory(pool, { userId, ...history })
      return earnTasksPage(pool, userId, { limit: 51, after: undefined })
    },
  },
  {
    id: 'P19k',
    name: 'positions by status, and those that a comparison with the chain reads',
    calls: 1_000,
    call: ({ engine: { pool, taskEngine } }, userId, n) => {
      if (n % 3 === 0) return taskEngine.ledger.subAccounts(pool, userId, shares)
      const status = n % 3 === 1 ? 'active' : 'withdrawn'
      return positionsPage(pool, userId, vaultRef, { limit: 51, after: undefined, status, asset: shares })
    },
  },
  {
    id: 'P19g',
    name: 'what an admission reads of earlier tasks and spend',
    calls: 1_000,
    call: ({ engine: { pool } }, userId, n) => {
      const since = new Date(Date.now() - 10_000)
      if (n % 3 === 0) return recentOrders(pool, { userId, kind: 'perp', since })
      if (n % 3 === 1) return recentSpendings({ db: pool, clock }, userId)
      return policyStateOf(pool, userId, { since: new Date(Date.now() - 86_400_000) })
    },
  },
  {
    id: 'P19h',
    name: 'batches of retention, 1,000 rows each',
    calls: 1,
    prepare: addExpired,
    async call({ engine: { pool }, joined }) {
      for (const job of retentionJobs({ config, db: pool, clock, joined })) while (await job.runBatch());
    },
    statement: /^\s*delete/,
  },
  {
    id: 'P19i',
    name: 'audits of the ledger, each of 20 money tasks, 100 accounts and a block',
    calls: 20,
    prepare: async (side) => {
      for (let n = 0; n < 20; n++)
        await side.engine.wait(
          callerOf(side.users[n % side.users.length]!),
          n,
          `audit-${performance.now()}-${n}`,
        )
    },
    call: ({ engine }) => audit(engine, slice),
  },
  {
    id: 'P19j',
    name: 'gauges of tasks, as a scrape reads them',
    calls: 300,
    call: ({ engine: { pool } }) => readTaskGauges({ pool }, clock, { running: 0, slots: 1 }),
  },
]

const plansOf = ({ statements, pool }: Side) => statements.plans(pool)
const mostBlocks = (plans: readonly Plan[]) => Math.max(0, ...plans.map(({ blocks }) => blocks))

type Round = { ms: number[]; readMs: number }

/** Milliseconds that the server has waited for blocks outside of its memory, of every backend. */
const readMsOf = async ({ pool }: Side): Promise<number> => {
  await pool.query('select pg_stat_force_next_flush()')
  const { rows } = await pool.query<{ ms: number }>(
    'select blk_read_time as ms from pg_stat_database where datname = current_database()',
  )
  return rows[0]?.ms ?? 0
}

/** Durations in milliseconds, and the part that was spent on reads from the disk. */
async function measureRound(side: Side, { calls, call, prepare, statement }: Operation): Promise<Round> {
  await prepare?.(side)
  const ms: number[] = []
  side.statements.clear()
  const readMsBefore = await readMsOf(side)
  for (let n = 0; n < calls; n++) {
    const startedMs = performance.now()
    await call(side, side.users[n % side.users.length]!, n)
    ms.push(performance.now() - startedMs)
  }
  // Backends report their counts within a second.
  await delay(1_100)
  const readMs = (await readMsOf(side)) - readMsBefore
  return { ms: statement ? side.statements.durations(statement) : ms, readMs }
}

const perCall = (ms: number, rounds: readonly number[][]) =>
  Number((ms / rounds.flat().length).toPrecision(3))

async function measureOperation(operation: Operation, sides: readonly [Side, Side]): Promise<void> {
  // The first round warms plans and caches.
  const measured = { small: [] as number[][], grown: [] as number[][] }
  const readMs = { small: 0, grown: 0 }
  for (let round = 0; round <= rounds; round++)
    for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
      const { ms, readMs: waitedMs } = await measureRound(side, operation)
      if (round === 0) continue
      measured[side.name].push(ms)
      readMs[side.name] += waitedMs
    }
  const p99 = (name: Side['name']) => measured[name].map((ms) => percentile(ms, 0.99))
  const all = (name: Side['name'], share: number) =>
    Number(percentile(measured[name].flat(), share).toPrecision(3))
  const [small, plans] = [await plansOf(sides[0]), await plansOf(sides[1])]
  for (const { text, lines } of plans)
    progress(`plan ${operation.id} ${text.slice(0, 200)}\n${lines.map((line) => `    ${line}`).join('\n')}`)
  const baseline = p99('small')
  report({
    id: operation.id,
    name: `p99 of ${operation.name}, at ${tasks.toLocaleString('en-US')} tasks to 2,000`,
    goal: `<= ${goal}`,
    ratios: p99('grown').map((ms, round) => ms / baseline[round]!),
    met: (ratio) => ratio <= goal,
    annex: {
      p50_ms: { small: all('small', 0.5), grown: all('grown', 0.5) },
      p99_ms: { small: all('small', 0.99), grown: all('grown', 0.99) },
      reads_ms_per_call: {
        small: perCall(readMs.small, measured.small),
        grown: perCall(readMs.grown, measured.grown),
      },
      blocks: { small: mostBlocks(small), grown: mostBlocks(plans) },
      scans: [...new Set(plans.flatMap(({ scans }) => scans))],
    },
  })
}

process.stdout.write(
  `${JSON.stringify({
    section: 'Growth',
    about:
      'Times in a database of millions of tasks, compared with one of 2,000 on the same server, in turns. Users with up to 100,000 tasks and users with a hundred take part alike. `reads_ms_per_call` is the wait for the disk, `blocks` are those that the dearest statement reads, `scans` the nodes of the plans that read a table.',
  })}\n`,
)
await using parts = new AsyncDisposableStack()
const sides = [await openSide('small', 2_000, parts), await openSide('grown', tasks, parts)] as const
for (const operation of operations) await measureOperation(operation, sides)
