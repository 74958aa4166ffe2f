/** kill -9 at the boundaries of the statements of a run: its slot has one execution and one chat, which is paid once. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { authorityFields, insertSchedule } from '../chat/schedule-fixture.ts'
import { type Agent, bearer, eventually, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { isNightly } from '../proof/support/seed.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { killAtEach, recordPoints } from './failpoints.ts'

const pointPattern =
  /^db:(task_accept|task_step|select strategy_execution|update strategy_execution|update strategy|insert strategy_event|insert strategy_file|select chat_turn|begin|commit)/
const passesOf = (name: string) => (isNightly ? 20 : /task_step|task_accept|commit/.test(name) ? 3 : 1)

let app: CrashApp
let survivor: Gateway
let user: Agent
let scheduleId: string
let slots = 0

before(async () => {
  app = await createCrashApp()
  survivor = await app.gateway()
  user = await newAgent(survivor.url)
  const { rows } = await app.admin.query<{ id: string }>('select id from app_user where agent_id = $1', [
    user.agentId,
  ])
  scheduleId = await insertSchedule(app.admin, rows[0]!.id, {
    query: 'credits left?',
    authority: authorityFields(user),
  })
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

type Record = { status: string; number: string; chats: string; ended_chats: string }
const runOf = async (slot: Date): Promise<Record[]> =>
  (
    await app.admin.query<Record>(
      `select e.status, e.number,
         (select count(*) from task t where t.parent_id = e.id and t.kind = 'chat') as chats,
         (select count(*) from chat_turn c where c.chat_id = e.chat_id and c.status = 'completed') as ended_chats
       from strategy_execution e where e.strategy_id = $1 and e.slot = $2`,
      [scheduleId, slot],
    )
  ).rows

/** Serves a slot at the victim alone, and completes it at the survivor. */
async function runAt(victim: Gateway): Promise<Date> {
  survivor.child.kill('SIGSTOP')
  const slot = new Date()
  await app.admin.query(
    `update strategy set status = 'active', next_at = $2, following_at = null where id = $1`,
    [scheduleId, slot],
  )
  const hasEnded = async () => {
    const [run] = await runOf(slot)
    const isOver = run !== undefined && run.status !== 'pending' && run.status !== 'running'
    return isOver || victim.child.exitCode !== null || victim.child.signalCode !== null || undefined
  }
  await eventually(hasEnded, 'the end of the run or of the victim', 60_000).finally(() =>
    survivor.child.kill('SIGCONT'),
  )
  await eventually(
    async () => ((await runOf(slot))[0]?.status === 'completed' ? true : undefined),
    'the end of the run',
    60_000,
  )
  slots++
  return slot
}

async function assertRun(slot: Date, at: string): Promise<void> {
  const runs = await runOf(slot)
  assert.deepEqual(
    runs.map(({ status, chats, ended_chats }) => [status, chats, ended_chats]),
    [['completed', '1', '1']],
    at,
  )
  const { rows: events } = await app.admin.query<{ seq: number; type: string }>(
    `select v.seq, v.type from strategy_event v join strategy_execution e on e.id = v.execution_id
     where e.strategy_id = $1 and e.slot = $2 order by v.seq`,
    [scheduleId, slot],
  )
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
    at,
  )
  assert.equal(events.filter(({ type }) => type === 'done' || type === 'error').length, 1, at)
  assert.equal(events.at(-1)?.type, 'done', at)
  const { body } = await http<{ credits_available: number }>(`${survivor.url}/v1/credits`, {
    headers: bearer(user),
  })
  assert.equal(body.credits_available, 200 - slots, `${at}: one credit for each chat`)
  const { rows: reported } = await app.admin.query<{ type: string; count: string }>(
    `select e.type, count(*) from user_event e
     where e.type like 'schedule.%' and e.body ->> 'scheduled_for' = $1 group by e.type order by e.type`,
    [slot.toISOString()],
  )
  assert.deepEqual(
    reported.map(({ type, count }) => [type, count]),
    [
      ['schedule.run_finished', '1'],
      ['schedule.run_started', '1'],
    ],
    at,
  )
}

const needed = [/^db:task_step:after/, /^db:task_accept:after/, /^db:insert strategy_event:after/]

test('a run whose gateway is killed at any point is one execution with one chat, reported once', async (t) => {
  const points = await recordPoints({
    pattern: pointPattern,
    passesOf,
    needed,
    shortPoint: 'db:insert strategy_event:after',
    launch: app.gateway,
    work: async (gateway, attempt) => assertRun(await runAt(gateway), attempt),
  })
  const reached = await killAtEach(
    points,
    app.gateway,
    async (point, victim) => {
      victim.child.kill('SIGUSR2')
      const slot = await runAt(victim)
      const died = victim.child.signalCode === 'SIGKILL'
      await victim.kill()
      await assertRun(slot, point)
      return died
    },
    { startsAhead: false },
  )
  t.diagnostic(`${reached}, ${slots} runs`)
  await eventually(
    async () => ((await ledgerDrift(app.admin)) === 0 ? true : undefined),
    'the ledger is even',
  )
})
