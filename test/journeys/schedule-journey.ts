/** The life of a scheduled chat through one door, in days that the control port of the world advances. */
import assert from 'node:assert/strict'
import { operatorOf } from '../harness/admin.ts'
import { leaveCredits } from '../harness/backend.ts'
import { type Agent, bearer, dataFolder, eventually, type freshGateway, http } from '../harness/gateway.ts'
import type { Door } from '../harness/in-process-door.ts'
import { openIdentityRecords } from '../proof/support/identity-records.ts'
import { worldOf } from './world.ts'

type Schedule = {
  schedule_id: string
  version: number
  description: string
  next_runs: string[]
  setup_checklist: { required: boolean; done: boolean }[]
  status: string
  next_run_at: string | null
  run_count: number
}
type Execution = {
  execution_id: string
  scheduled_for: string
  version: number
  status: string
  skip_reason: string | null
  rating: number | null
  answer: string
}
type Event = { type: string; created_at: string; data: { schedule_id?: string; skip_reason?: string } }
type Page<Item> = { items: Item[]; total: number }

const daySeconds = 86_400

export async function liveSchedule(
  gateway: Awaited<ReturnType<typeof freshGateway>>,
  agent: Agent,
  door: Door,
): Promise<void> {
  const { advance } = await worldOf(gateway.world)
  const authorization = bearer(agent).authorization
  const call = async <B = Schedule>(name: string, input: object = {}): Promise<B> => {
    const reply = await door(name, { ...input }, { authorization })
    assert.equal(reply.status, 200, `${name}: ${JSON.stringify(reply)}`)
    return (reply as { result: B }).result
  }

  const preview = await call<Schedule & { query: string }>('schedules_preview', {
    text: 'every day at 09:00 UTC credits left?',
  })
  assert.deepEqual([preview.query, preview.next_runs.length], ['credits left?', 3])
  const draft = await call('schedules_create', { query: preview.query, schedule: 'every day at 09:00 UTC' })
  assert.deepEqual([draft.status, draft.description], ['draft', preview.description])
  assert.ok(draft.setup_checklist.every(({ required, done }) => done || !required))
  const own = { schedule_id: draft.schedule_id }
  assert.equal((await call('schedules_activate', { ...own, expected_version: 1 })).status, 'active')

  const executions = async () => (await call<Page<Execution>>('schedules_executions', own)).items
  const ended = (count: number) =>
    eventually(
      async () => {
        const items = await executions()
        const isOver = items.every(({ status }) => status !== 'pending' && status !== 'running')
        return items.length >= count && isOver ? items : undefined
      },
      `${count} executions`,
      60_000,
    )
  /** Passes the next slot by a minute, and more slots by days. */
  const passSlot = async (days = 0) => {
    const next = Date.parse((await call('schedules_get', own)).next_run_at!)
    const { now_ms } = (await http<{ now_ms: number }>(`${gateway.world}/time`)).body
    await advance(Math.ceil((next - now_ms) / 1_000) + days * daySeconds + 60)
  }
  await passSlot()
  await ended(1)
  await passSlot()
  await ended(2)
  await passSlot(3)
  const items = await ended(4)
  const endsOf = (list: readonly Execution[]) => list.map(({ status, skip_reason }) => skip_reason ?? status)
  assert.deepEqual(endsOf(items), ['completed', 'missed', 'completed', 'completed'])
  for (const { scheduled_for } of items) assert.match(scheduled_for, /T09:00:00/)
  const [newest, missed] = items
  assert.equal(Date.parse(newest!.scheduled_for) - Date.parse(missed!.scheduled_for), daySeconds * 1_000)
  assert.equal((await call('schedules_get', own)).run_count, 3)

  const { execution_id } = newest!
  const run = await call<Execution>('schedules_execution', { execution_id })
  assert.match(run.answer, /credits/)
  const events = await call<Page<{ type: string }>>('schedules_execution_events', {
    execution_id,
    limit: 100,
  })
  assert.equal(events.items.at(-1)?.type, 'done')
  assert.equal((await call<Execution>('schedules_rate', { execution_id, rating: 'down' })).rating, 1)
  const refreshed = await call<{ status: string }>('schedules_refresh_recommendations', {
    ...own,
    wait: true,
  })
  assert.equal(refreshed.status, 'completed', JSON.stringify(refreshed))
  const recommended = await call<Page<object> & { generated_at: string | null }>(
    'schedules_recommendations',
    own,
  )
  assert.ok(recommended.generated_at)
  const files = await call<Page<{ name: string }>>('schedules_artifacts', own)
  assert.deepEqual(
    files.items.map(({ name }) => name),
    ['report.md', 'report.md', 'report.md'],
  )
  assert.deepEqual((await call<Page<object>>('schedules_transactions', own)).items, [])

  const notified = async (type: string) => {
    const { events: all } = await call<{ events: Event[] }>('notifications_list', { limit: 100 })
    for (const { created_at } of all) assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 1_200_000)
    return all
      .filter((event) => event.type === type && event.data.schedule_id === draft.schedule_id)
      .map(({ data }) => data.skip_reason)
  }
  {
    await using rows = await openIdentityRecords(gateway.databaseUrl)
    const { user_id: userId } = await call<{ user_id: string }>('user_show')
    await leaveCredits(rows.db, userId, 0)
    await passSlot()
    await ended(5)
    await passSlot()
    await ended(6)
    using folder = dataFolder()
    const operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
    await operator.act('They have paid by invoice.', 'credits', 'grant', userId, '5')
  }
  await passSlot()
  assert.deepEqual(endsOf((await ended(7)).slice(0, 3)), ['completed', 'no_credits', 'no_credits'])
  assert.deepEqual(await notified('schedule.run_skipped'), ['missed', 'no_credits'])
  assert.equal((await notified('schedule.run_finished')).length, 4)

  const edited = await call('schedules_update', {
    ...own,
    expected_version: 1,
    schedule: 'daily at 10:00 UTC',
  })
  assert.deepEqual([edited.version, edited.status], [2, 'paused'])
  assert.equal((await call('schedules_activate', own)).status, 'active')
  await passSlot()
  const [latest] = await ended(8)
  assert.deepEqual([latest?.version, latest?.status], [2, 'completed'])
  assert.match(latest!.scheduled_for, /T10:00:00/)
  assert.equal((await call('schedules_pause', own)).status, 'paused')
  assert.equal((await call('schedules_activate', own)).status, 'active')
  const disabled = await call<Record<string, string[]>>('schedules_disable', own)
  assert.deepEqual(disabled, {
    disabled: [draft.schedule_id],
    already: [],
    not_found: [],
    flatten_task_ids: [],
  })
  await advance(2 * daySeconds)
  assert.equal((await call('schedules_get', own)).next_run_at, null)
  assert.equal((await executions()).length, 8)
}
