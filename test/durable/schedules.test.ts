/** Schedules with a fixed grid: an instance serves those that it knows, and each of them by itself. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { TaskKind } from '#kernel/task/task.ts'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const own = { steps: { only: async () => executed } }
const kindOf = (kind: string): TaskKind => ({ ...own, kind, version: 1, priority: 1 })
const soonMsMax = 5_000

describe('schedules with a fixed grid', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const insert = async (kind: string, at: Date) => {
    const id = newUser()
    await fixture.rows(
      `insert into schedule (id, user_id, kind, input, every_seconds, next_at, created_at)
       values ($1, null, $2, '{}', 3600, $3, now())`,
      id,
      kind,
      at,
    )
    return id
  }
  const slotOf = async (id: string) =>
    (await fixture.rows<{ next_at: Date }>('select next_at from schedule where id = $1', id))[0]!.next_at
  const findTasks = (kind: string) =>
    fixture.rows<{ id: string }>('select id from task where kind = $1', kind)
  const made = (kind: string, count: number, msMax?: number) =>
    eventually(
      async () => {
        const tasks = await findTasks(kind)
        return tasks.length >= count ? tasks : undefined
      },
      `${count} tasks ${kind}`,
      msMax,
    )

  test('the slot of a kind that an instance lacks is left to one that has it', async () => {
    const at = new Date(Date.now() - 1_000)
    const unknown = await insert('newer', at)
    await using _old = await fixture.instance(own, { internal: [kindOf('known')] })
    await insert('known', at)
    await made('known', 1)
    assert.deepEqual(await slotOf(unknown), at)
    await using _new = await fixture.instance(own, { internal: [kindOf('newer')] })
    assert.equal((await made('newer', 1)).length, 1)
    await eventually(async () => (await slotOf(unknown)) > new Date() || undefined, 'the schedule moves on')
  })

  test('a schedule whose task is refused keeps its slot and holds up no other', async () => {
    await fixture.rows(`create function refuse_task() returns trigger language plpgsql as $$ begin
      if new.kind = 'refused' then raise exception 'refused by the test'; end if; return new; end $$`)
    await fixture.rows(
      'create trigger refuse before insert on task for each row execute function refuse_task()',
    )
    const at = new Date(Date.now() - 1_000)
    const refused = await insert('refused', new Date(at.getTime() - 1_000))
    for (let n = 0; n < 20; n++) await insert('accepted', at)
    await using _instance = await fixture.instance(own, {
      internal: [kindOf('refused'), kindOf('accepted')],
    })
    await made('accepted', 20)
    assert.equal((await findTasks('refused')).length, 0)
    assert.ok((await slotOf(refused)) < at)
  })

  test('a schedule that one instance makes is served by another one before its next poll', async () => {
    await using a = await fixture.instance(own, { internal: [kindOf('hinted')] })
    await eventually(async () => a.taskEngine.isOnDuty() || undefined, 'duty')
    await using b = await fixture.instance(own)
    await b.taskEngine.schedules.ensure(fixture.admin.pool, {
      kind: 'hinted',
      input: {},
      everySeconds: 3_600,
      firstAt: new Date(),
    })
    await made('hinted', 1, soonMsMax)
  })
})
