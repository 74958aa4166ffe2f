/** A standby that takes over, and one that goes away: what is lost holds money, and what could be lost says so. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DatabaseTime } from '#durable/time/detect-lost-commits.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import { openTestCore } from '../harness/core.ts'
import { eventually } from '../harness/gateway.ts'
import { unlimited } from '../harness/spend.ts'
import { type StandbyCluster, skip, standbyCluster } from '../harness/standby-cluster.ts'
import { executed, newUser, openFixture } from './engine-fixture.ts'

const takeoverMsMax = 30_000
const kind = { steps: { only: async () => executed } }

async function instanceOn(servers: StandbyCluster) {
  const fixture = await openFixture(servers)
  const openTime = (time: DatabaseTime) => time.open(async () => [])
  const instance = await fixture.instance(kind, { leaseMs: 900, openTime })
  return {
    holds: instance.taskEngine.holds,
    rows: fixture.rows,
    async runTask() {
      assert.equal((await instance.run(newUser())).outcome, 'executed')
    },
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  }
}

/** A database that is being replaced refuses for a moment. */
const settled = <T>(look: () => Promise<T | undefined>, what: string) =>
  eventually(() => look().catch(() => undefined), what, takeoverMsMax)

test('a standby that has everything takes over, and money goes on by itself', { skip }, async () => {
  const servers = await standbyCluster()
  await using instance = await instanceOn(servers)
  await instance.runTask()
  await servers.stopPrimary('fast')
  await servers.takeOver()
  await settled(async () => {
    const rows = await instance.rows('select 1 from database_witness where timeline = 2')
    return rows.length === 1 && !instance.holds.find() ? true : undefined
  }, 'the heartbeats know the new timeline')
  await instance.runTask()
  assert.deepEqual(await instance.rows('select * from money_hold'), [])
})

test('a standby that lacks acknowledged commits takes over, and money is on hold', { skip }, async () => {
  const servers = await standbyCluster()
  await using instance = await instanceOn(servers)
  await instance.runTask()
  await servers.stopStandby()
  await instance.runTask()
  await servers.stopPrimary('immediate')
  await servers.startStandby()
  await servers.takeOver()
  const stored = await settled(async () => {
    const [row] = await instance.rows<{ reason: string }>(`select reason from money_hold where scope = 'all'`)
    return row && instance.holds.find() ? row : undefined
  }, 'money is on hold')
  assert.ok(['went_back', 'lost_commits'].includes(stored.reason), stored.reason)
})

type Away = {
  what: string
  stop(servers: StandbyCluster): Promise<void>
  start(servers: StandbyCluster): Promise<void>
}
const ways: Away[] = [
  {
    what: 'without its standby',
    stop: ({ stopStandby }) => stopStandby(),
    start: ({ startStandby }) => startStandby(),
  },
  {
    what: 'with one of two required standbys',
    stop: ({ requireStandbys }) => requireStandbys(2),
    start: ({ requireStandbys }) => requireStandbys(1),
  },
]
for (const { what, stop, start } of ways)
  test(`${what} exits go on and say so, and new money is refused`, { skip }, async () => {
    const servers = await standbyCluster({ isSynchronous: true })
    await using fixture = await openFixture(servers)
    const config = { DATABASE_DURABILITY: 'standby' } as const
    await stop(servers)
    await assert.rejects(
      openTestCore({ databaseUrl: servers.url, config }),
      /no synchronous standby acknowledges/,
    )
    await start(servers)

    let exit = false
    const admit = async (_: unknown, { userId }: Asker) => {
      const action = { userId, operation: 'spend', chainId: 'test', tokens: [], recipients: [] }
      const spend = { action: { ...action, usdMicros: 0n, exit }, check: async () => unlimited() }
      return { data: {}, first: 'only', spend }
    }
    // A step may replace the note of its task.
    const steps = { only: async () => ({ ...executed, data: { note: null } }) }
    const instance = await settled(
      () => fixture.instance({ steps }, { config, admit, replicationGraceMs: 4_000 }),
      'the standby streams again',
    )
    const { replication } = instance.taskEngine.time
    const run = async () => {
      const { outcome, message } = await instance.run(newUser())
      return [outcome, message]
    }
    const note = 'not replicated: the database had no standby when this was accepted'
    assert.deepEqual(await run(), ['executed', 'Completed'])

    await stop(servers)
    await eventually(async () => replication.isReplicated() === false || undefined, 'it is noticed')
    // Within the grace the server lets every commit wait for its standby.
    assert.deepEqual(await run(), ['executed', `Completed (${note})`])
    await assert.rejects(run(), {
      code: 'unavailable',
      extras: { reason: 'not_replicated', retry_after: 10 },
    })
    exit = true
    assert.deepEqual(await run(), ['executed', `Completed (${note})`])

    exit = false
    await start(servers)
    await eventually(async () => replication.isReplicated() || undefined, 'the standby is back')
    assert.deepEqual(await run(), ['executed', 'Completed'])
  })
