/** A database that lost commits which an instance saw: money waits on every instance until an operator goes on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CompareChains,
  createDatabaseTime,
  type DatabaseTime,
  type SearchedChain,
} from '#durable/time/detect-lost-commits.ts'
import { createMoneyHolds, everything, raiseGeneration, storeHold } from '#durable/time/money-hold.ts'
import { systemClock } from '#kernel/clock.ts'
import { systemRandom } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import { createWitnessFile, type WitnessFile, type WitnessRecord } from '#store/database-witness-file.ts'
import { dataFolder, eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const leaseMs = 600

test('every instance holds money within a heartbeat, forgets no task, and goes on together', async () => {
  await using fixture = await openFixture()
  let runs = 0
  const kind = {
    steps: {
      only: async () => {
        runs += 1
        return executed
      },
    },
  }
  let admissions = 0
  const admit = async () => {
    admissions += 1
    return { data: {}, first: 'only' }
  }
  const instances = [
    await fixture.instance(kind, { leaseMs, admit }),
    await fixture.instance(kind, { leaseMs, admit }),
  ] as const
  const userId = newUser()
  assert.equal((await instances[0].run(userId, { key: 'before' })).outcome, 'executed')
  const beats = () => fixture.rows<{ beat: string }>('select beat from database_witness where beat > 2')
  await eventually(async () => (await beats()).length === 2 || undefined, 'both have counted heartbeats')

  // As a backup from before the third heartbeat shows them.
  await fixture.rows('update database_witness set beat = 1 returning id')
  await eventually(async () => {
    const [{ least }] = (await fixture.rows('select min(beat) as least from database_witness')) as [
      { least: string },
    ]
    const areHeld = instances.every(({ taskEngine }) => taskEngine.holds.find())
    // A heartbeat follows what the one before it has found.
    assert.ok(
      areHeld || Number(least) < 3,
      'each instance has had a heartbeat, and one of them holds nothing',
    )
    return areHeld || undefined
  }, 'both instances hold money')
  for (const [n, instance] of instances.entries()) {
    const refusal = await instance.run(userId, { key: `held ${n}` }).catch((error: unknown) => error)
    assert.equal((refusal as { code: string }).code, 'unavailable')
    const { extras } = refusal as { extras: Record<string, unknown> }
    assert.deepEqual(
      { ...extras, since: null },
      {
        reason: 'money_on_hold',
        hold: 'went_back',
        scope: 'all',
        since: null,
        retry_after: 60,
        outcome: 'unknown',
        idempotency_key: `held ${n}`,
      },
    )
    // A request that the database knows is answered.
    assert.equal((await instance.run(userId, { key: 'before' })).outcome, 'executed')
  }
  assert.equal(admissions, 1, 'nothing is read for what is refused')
  const hold = await eventually(async () => {
    const [stored] = await fixture.rows<{ reason: string; detail: { seen: object; found: object } }>(
      'select reason, detail from money_hold',
    )
    return stored
  }, 'the hold is stored')
  assert.equal(hold.reason, 'went_back')
  assert.ok(hold.detail.seen && hold.detail.found)

  // A task that is ready meanwhile, as one of a schedule is, waits.
  const waiting = newUser()
  const [engine] = [instances[0].taskEngine]
  const taskKind = { kind: 'test_run', version: 1, priority: 1, steps: kind.steps } as const
  const taskId = await engine.transact((tx) =>
    engine.enqueue(tx, {
      userId: waiting,
      kind: taskKind,
      input: {},
      admission: { data: {}, first: 'only' },
    }),
  )
  engine.announceQueued()
  const [{ beat }] = (await fixture.rows<{ beat: string }>(
    'select max(beat) as beat from database_witness',
  )) as [{ beat: string }]
  const later = () => fixture.rows('select 1 from database_witness where beat > $1', String(Number(beat) + 2))
  await eventually(async () => (await later()).length > 0 || undefined, 'two more heartbeats')
  assert.equal((await fixture.readTask(taskId)).status, 'pending')
  assert.equal(runs, 1)

  await raiseGeneration(fixture.admin.pool)
  await fixture.rows('delete from money_hold')
  assert.equal((await fixture.waitForEnd(taskId)).outcome, 'executed')
  for (const instance of instances)
    await eventually(async () => !instance.taskEngine.holds.find() || undefined, 'money goes on')
  assert.equal((await instances[1].run(userId, { key: 'after' })).outcome, 'executed')
})

test('a resume ends what was judged before it, and the comparison after it begins at the database of now', async () => {
  await using fixture = await openFixture()
  using folder = dataFolder()
  const witnessFile = createWitnessFile(folder.path)
  const kind = { steps: { only: async () => executed } }
  type Witness = { id: string; beat: bigint }
  /** Of every instance. */
  const beats = async (n: number) => {
    const witnesses = () => fixture.rows<Witness>('select id, beat from database_witness')
    const before = new Map((await witnesses()).map(({ id, beat }) => [id, beat]))
    await eventually(async () => {
      const now = await witnesses()
      const areLater = now.every(({ id, beat }) => beat >= (before.get(id) ?? 0n) + BigInt(n))
      return (now.length > 0 && areLater) || undefined
    }, `${n} heartbeats`)
  }
  const findNothing = (time: DatabaseTime) => time.open(async () => [])
  const before = await fixture.instance(kind, { leaseMs, witnessFile, openTime: findNothing })
  await beats(2)
  await before[Symbol.asyncDispose]()
  const [{ id, lsn }] = (await fixture.rows(
    `select value as id, (select (max(lsn) - '0/0')::text from database_witness) as lsn
       from database_binding where key = 'database'`,
  )) as [{ id: string; lsn: string }]
  let remembered: WitnessRecord | undefined
  const openTime = async (time: DatabaseTime) => {
    await findNothing(time)
    remembered = witnessFile.read(id)
  }
  const { holds } = (await fixture.instance(kind, { leaseMs, witnessFile, openTime })).taskEngine
  assert.equal(remembered?.lsn, lsn, 'a remembered position is a stored one')

  // Held with an earlier point and compared; an instance that knows of a still earlier one has it compared again.
  const early = new Date('2020-01-01T00:00:00Z')
  const held = { scope: everything, reason: 'restored' as const, since: early, detail: {} }
  const { pool } = fixture.admin
  await storeHold(pool, { ...held, point: new Date('2020-01-02T00:00:00Z') }, 0)
  await fixture.rows('update money_hold set compared_at = now()')
  await storeHold(pool, { ...held, point: early }, 0)
  await storeHold(pool, { ...held, point: new Date() }, 0)
  const stored = () => fixture.rows<{ point: Date; compared_at: Date | null }>('select * from money_hold')
  const [hold] = await stored()
  assert.deepEqual([hold?.point, hold?.compared_at], [early, null])
  await eventually(async () => holds.find(), 'a heartbeat shows the hold')

  // On a new machine, which remembers nothing and finds that the chains are ahead, until the operator has accepted that.
  const points: (Date | null)[] = []
  let acceptedAt: Date | undefined
  const compareChains: CompareChains = async (point) => {
    points.push(point)
    const isAccepted = point !== null && acceptedAt !== undefined && point > acceptedAt
    return isAccepted ? [] : [{ chainId: '8453', found: 'lost', detail: { lost: true } }]
  }
  const fresh = (await fixture.instance(kind, { leaseMs, openTime: (time) => time.open(compareChains) }))
    .taskEngine
  await eventually(async () => fresh.holds.find(), 'the new instance holds')
  await eventually(async () => points.length > 0 || undefined, 'the new instance compares')

  const [{ now }] = (await fixture.rows('select clock_timestamp() as now')) as [{ now: Date }]
  await beats(2)
  acceptedAt = now
  await raiseGeneration(pool)
  await fixture.rows('delete from money_hold')
  await storeHold(pool, held, 0)
  assert.deepEqual(await stored(), [], 'nobody stores again what was judged before')
  const [{ generation }] = (await fixture.rows(
    `select value::float8 as generation from database_binding where key = 'time_generation'`,
  )) as [{ generation: number }]
  assert.ok(
    generation > 1_700_000_000,
    'a restore of the same backup begins again at 0, and never meets it again',
  )
  for (const each of [holds, fresh.holds])
    await eventually(async () => !each.find() || undefined, 'money goes on')
  assert.ok((points.at(-1) ?? early) > now, 'the comparison begins at the last heartbeat')
})

type Opened = {
  witnessFile: WitnessFile
  seen?: Partial<WitnessRecord>
  compareChains?: CompareChains
  searchedChains?: readonly SearchedChain[]
}
/** An instance with what it saw of the database before, which has signed something. */
async function openWith(
  fixture: EngineFixture,
  { witnessFile, seen, compareChains = async () => [], searchedChains }: Opened,
) {
  const [{ id }] = (await fixture.rows(
    `select value as id from database_binding where key = 'database'`,
  )) as [{ id: string }]
  await fixture.rows(
    `insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, at)
       values ($1::uuid, $1::uuid, 'only', 'test', '{}', '{}', $1::uuid::text, 'confirmed', 'test', now()) returning id`,
    newUser(),
  )
  if (seen) {
    const hidden = { system: null, timeline: null, lsn: null }
    witnessFile.write(id, { witness: newUser(), generation: 0, beat: 50, ...hidden, ...seen })
  }
  const openTime = (time: DatabaseTime) => time.open(compareChains, searchedChains)
  const kind = { steps: { only: async () => executed } }
  return (await fixture.instance(kind, { leaseMs, witnessFile, openTime })).taskEngine
}
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()

test('a gateway that comes back after its heartbeats were deleted compares, and one whose are lost holds', async () => {
  await using fixture = await openFixture()
  using folder = dataFolder()
  // A gateway writes into its own at each heartbeat.
  using other = dataFolder()
  let compared = 0
  const compareChains = async () => {
    compared += 1
    return []
  }
  const deleted = { witnessFile: createWitnessFile(folder.path), seen: { point: daysAgo(31) }, compareChains }
  const { holds } = await openWith(fixture, deleted)
  assert.deepEqual([compared, holds.find()], [1, undefined])
  const lost = await openWith(fixture, {
    witnessFile: createWitnessFile(other.path),
    seen: { point: daysAgo(29) },
  })
  assert.equal(lost.holds.find()?.reason, 'went_back')
})

test('a chain that does not answer is on hold alone and everywhere, until its row is gone', async () => {
  await using fixture = await openFixture()
  const other = (await fixture.instance({ steps: { only: async () => executed } }, { leaseMs })).taskEngine
  using folder = dataFolder()
  const compareChains: CompareChains = async () => [
    { chainId: '8453', found: 'unknown' },
    { chainId: '137', found: 'clean' },
  ]
  const { holds } = await openWith(fixture, { witnessFile: createWitnessFile(folder.path), compareChains })
  const reasons = () => ['8453', '137'].map((chain) => holds.find(chain)?.reason)
  assert.deepEqual([holds.find(), ...reasons()], [undefined, 'not_compared', undefined])
  await eventually(async () => other.holds.find('8453'), 'the other instance holds it, too')
  assert.deepEqual(await fixture.rows('delete from money_hold returning scope'), [{ scope: '8453' }])
  for (const each of [holds, other.holds])
    await eventually(async () => !each.find('8453') || undefined, 'its money goes on')
})

const searchedChains: SearchedChain[] = [
  { chainId: '7565164', afterFailover: true },
  { chainId: '999', afterFailover: false },
]

test('after a failover a chain where a transaction of before can still land is searched, also beside others', async () => {
  await using fixture = await openFixture()
  using folder = dataFolder()
  const point = new Date().toISOString()
  const seen = { beat: 0, timeline: 0, point }
  const { holds } = await openWith(fixture, {
    witnessFile: createWitnessFile(folder.path),
    seen,
    searchedChains,
  })
  assert.deepEqual(
    ['7565164', '999'].map((chain) => holds.find(chain)?.reason),
    ['not_compared', undefined],
  )
  assert.equal(holds.find(), undefined)
})

test('without a witness file, chains that no counter compares are searched since the last moment that the database knows', async () => {
  await using fixture = await openFixture()
  const { pool } = fixture.admin
  const start = async () => {
    const holds = createMoneyHolds()
    const deps = {
      pool,
      holds,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      witnessFile: undefined,
      leaseMs,
    }
    await createDatabaseTime(deps).open(async () => [], searchedChains)
    const stored = await fixture.rows<{ scope: string; reason: string; point: Date }>(
      'delete from money_hold returning scope, reason, point',
    )
    assert.equal(holds.find(), undefined)
    return stored.map(({ scope, reason, point }) => [scope, reason, point.getTime()]).toSorted()
  }
  const heldSince = (at: Date) => ['7565164', '999'].map((scope) => [scope, 'not_compared', at.getTime()])
  assert.deepEqual(await start(), [], 'nothing was ever signed')

  // As an earlier release left it, which counted no heartbeats.
  const instance = await fixture.instance({ steps: { only: async () => executed } }, { leaseMs })
  await instance.run(newUser())
  await instance[Symbol.asyncDispose]()
  await using accepting = await fixture.instance(
    { steps: { only: async () => executed } },
    { leaseMs: 600_000, slots: 0 },
  )
  const { task_id: waiting } = await accepting.run(newUser(), { timeoutMs: 0 })
  const witnesses = () => fixture.rows('select 1 from database_witness')
  await eventually(async () => (await witnesses()).length === 2 || undefined, 'its only heartbeat')
  const lookedUp = async () =>
    (
      await fixture.rows<{ id: string | null }>(
        'update task t set execution_id = null from task old where t.id = $1 and old.id = t.id returning old.execution_id as id',
        waiting,
      )
    )[0]?.id
  await fixture.rows(
    `insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, at)
       values ($1::uuid, $1::uuid, 'only', 'test', '{}', '{}', $1::uuid::text, 'confirmed', 'test', now()) returning id`,
    newUser(),
  )
  await fixture.rows('delete from database_witness returning id')
  const [past, recent] = [3_600_000, 1_000].map((ms) => new Date(Date.now() - ms)) as [Date, Date]
  await fixture.rows('update task set updated_at = $1 returning id', past)
  assert.deepEqual(await start(), heldSince(past))
  const beat = (at: Date) =>
    fixture.rows(
      'insert into database_witness (id, beat, seen_at) values (gen_random_uuid(), 1, $1) returning id',
      at,
    )
  const heartbeat = new Date(past.getTime() + 60_000)
  await beat(heartbeat)
  assert.deepEqual(await start(), heldSince(heartbeat))
  assert.equal(await lookedUp(), waiting, 'what waits may have been executed, and forgotten')
  // Others run: a new instance beside them holds nothing.
  await beat(recent)
  assert.deepEqual(await start(), [])
  assert.equal(await lookedUp(), null)
})
