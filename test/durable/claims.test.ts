/** Claims of due tasks: by class, by index, and by the instances that have slots. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createClaims, startClaims, stopClaims } from '#durable/run/claims.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { silentLog } from '#kernel/log.ts'
import type { TaskKind } from '#kernel/task/task.ts'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const queuedTasks = 20_000
/** The queue alone has several hundred. */
const blocksMax = 400

type Plan = { 'Shared Hit Blocks': number; 'Shared Read Blocks': number }

describe('claims', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const kindOf = (name: string, priority: 0 | 1 | 2, step: () => Promise<void>): TaskKind => ({
    kind: name,
    version: 1,
    priority,
    steps: {
      only: async () => {
        await step()
        return executed
      },
    },
  })

  test('a full class hides no task of another one, and exits have slots that no other task takes', async () => {
    const gate = Promise.withResolvers<void>()
    const begun = { exit: 0, ordinary: 0, background: 0 }
    const counted = (name: keyof typeof begun, priority: 0 | 1 | 2) =>
      kindOf(name, priority, async () => {
        begun[name] += 1
        await gate.promise
      })
    const kinds = {
      exit: counted('exit', 0),
      ordinary: counted('ordinary', 1),
      background: counted('background', 2),
    }
    await using a = await fixture.instance(
      { steps: { only: async () => executed } },
      { slots: 4, internal: Object.values(kinds) },
    )
    const enqueue = (kind: TaskKind, count: number) =>
      fixture.admin.transaction(async (tx) => {
        const ids: string[] = []
        for (let n = 0; n < count; n++)
          ids.push(
            await a.taskEngine.enqueue(tx, {
              userId: newUser(),
              kind,
              input: {},
              admission: { data: {}, first: 'only' },
            }),
          )
        return ids
      })
    const background = await enqueue(kinds.background, 12)
    await eventually(
      async () => begun.background === 2 || undefined,
      'background tasks take half of the slots',
    )
    const ordinary = await enqueue(kinds.ordinary, 12)
    await eventually(async () => begun.ordinary === 2 || undefined, 'ordinary tasks take the others')
    const exits = await enqueue(kinds.exit, 4)
    await eventually(async () => begun.exit === 4 || undefined, 'exits begin in spite of both backlogs')
    assert.deepEqual([begun.background, begun.ordinary], [2, 2])
    gate.resolve()
    for (const id of [...background, ...ordinary, ...exits])
      assert.equal((await fixture.waitForEnd(id)).outcome, 'executed')
  })

  test('a claim reads a bounded number of blocks of a long queue and of many tasks', async () => {
    await fixture.rows(
      `with made as (
         insert into task (id, shard, user_id, kind, kind_version, status, state, step, data, input, deadline, created_at, updated_at)
         select gen_random_uuid(), 0, gen_random_uuid(), 'queued', 1, 'pending', 'accepted', 'only', '{}', '{}',
           now() + interval '1 hour', now(), now() from generate_series(1, $1::integer) returning id, user_id),
       queued as (insert into task_queue (task_id, user_id, kind, priority, run_at)
         select id, user_id, 'queued@1', 1 + (random() * 1)::integer, now() - interval '1 minute' from made)
       select 1`,
      queuedTasks,
    )
    await fixture.rows('vacuum analyze task')
    await fixture.rows('vacuum analyze task_queue')
    const sent: { text: string; values: unknown[] }[] = []
    const query = async (each: { text: string; values: unknown[] }) => {
      sent.push(each)
      return { rows: [] }
    }
    const claims = createClaims({
      pool: { query } as never,
      clock,
      log: silentLog,
      instanceId: newUser(),
      options: { leaseMs: 1_000, pollMs: 60_000 },
      isLeaseHeld: () => true,
      isOnDuty: () => false,
      hasPeers: () => false,
      onSaturated: () => undefined,
      capacity: () => ({
        exits: 16,
        ordinary: 8,
        backgroundMax: 4,
        backgroundMin: 2,
        conversations: 4,
        unattended: 2,
      }),
      userShares: () => ({ full: [], left: 16 }),
      priorityOf: () => 1,
      onClaimed: () => undefined,
      kinds: () => ['queued@1'],
    })
    startClaims(claims)
    await eventually(async () => sent.length > 0 || undefined, 'the claim is sent')
    await stopClaims(claims)
    const client = await fixture.admin.pool.connect()
    try {
      await client.query('set plan_cache_mode = force_generic_plan')
      await client.query('begin')
      const { text, values } = sent[0]!
      const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>({
        text: `explain (analyze, buffers, format json) ${text}`,
        values,
      })
      const plan = rows[0]!['QUERY PLAN'][0].Plan
      const blocks = plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
      assert.ok(blocks <= blocksMax, `the claim read ${blocks} blocks`)
      assert.ok(!/"Node Type": "Seq Scan",[^}]*"Relation Name": "task/.test(JSON.stringify(plan)), 'no scan')
      await client.query('rollback')
    } finally {
      client.release(true)
      await fixture.rows(`delete from task_queue where kind = 'queued@1' returning 1`)
    }
  })
})
