/** Scheduled chats over HTTP: from a sentence to a run, with what is refused on the way. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  type Agent,
  type Answer,
  bearer,
  eventually,
  freshGateway,
  http,
  newAgent,
} from '../harness/gateway.ts'

type Schedule = {
  schedule_id: string
  version: number
  title: string
  query: string
  schedule: { type: string; timezone: string }
  description: string
  next_runs: string[]
  next_runs_local: string[]
  compiled: { operations: string[]; per_run_max_usd: string; notes: string[] }
  setup_checklist: { key: string; required: boolean; done: boolean }[]
  health: string
  status: string
  status_reason: string | null
  next_run_at: string | null
  run_count: number
}
type Execution = {
  execution_id: string
  version: number
  number: number
  execution_type: string
  scheduled_for: string | null
  status: string
  outcome: string
  rating: number | null
  answer: string
  chat_id: string
  task_ids: string[]
  credits_used: number
  artifacts: { name: string; url: string }[]
}
type Page<Item> = { items: Item[]; total: number; skip: number; limit: number }
type Refusal = { code: string; detail: { loc: string[]; type: string; ctx?: Record<string, unknown> }[] }
type Conflict = { code: string; version?: number; missing?: string[]; max?: number }

const unknownId = '01890000-0000-7000-8000-000000000000'
const morning = { query: 'what do i hold on base', schedule: 'every Monday at 09:00 New York time' }

describe('scheduled chats', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  before(async () => {
    gateway = await freshGateway()
  })
  after(async () => gateway?.[Symbol.asyncDispose]())

  const callOf =
    (agent: Agent) =>
    <B = Schedule>(route: string, body?: object, key?: string): Promise<Answer<B>> => {
      const [method = '', path = ''] = route.split(' ')
      const headers = { ...bearer(agent), ...(key !== undefined && { 'idempotency-key': key }) }
      return http<B>(`${gateway.url}${path}`, { method, headers, ...(body && { body }) })
    }
  type Call = ReturnType<typeof callOf>
  const newUser = async (): Promise<Call> => callOf(await newAgent(gateway.url))
  const created = async (call: Call, fields: object = {}): Promise<Schedule> => {
    const { status, body } = await call('POST /schedule_chat', { ...morning, ...fields })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const ofSchedule = ({ schedule_id }: Pick<Schedule, 'schedule_id'>, verb: string) =>
    `/schedule-chat/schedule/${schedule_id}${verb}`

  test('a sentence is shown as a schedule before it is one', async () => {
    const call = await newUser()
    const preview = (text: string, zone = 'America/New_York') =>
      call<Schedule & { unread: string[]; questions: string[]; examples: string[] }>(
        `GET /schedule-chat/preview?${new URLSearchParams({ text, timezone: zone })}`,
      )
    const { body } = await preview('every Monday at 9am show me what i hold')
    assert.deepEqual([body.query, body.schedule.type], ['show me what i hold', 'calendar'])
    assert.match(body.description, /Monday.*America\/New_York/)
    assert.deepEqual([body.next_runs.length, body.next_runs_local.length], [3, 3])
    for (const text of body.next_runs_local) assert.match(text, /^Monday .* 09:00 America\/New_York/)
    const open = (await preview('show me what i hold')).body
    assert.deepEqual([open.schedule, open.next_runs, open.examples.length], [null, [], 3])
    assert.deepEqual([open.questions.length, open.unread.length], [1, 1])
    const zone = await preview('daily at 9 what do i hold', 'America/New_Yorc')
    assert.equal(zone.status, 422)
    const orders = (await preview('every Monday at 9am swap 20 usdc to eth on base')).body
    assert.deepEqual(orders.compiled.operations, ['swap_execute'])
  })

  test('a schedule is made, activated, listed, paused and disabled', async () => {
    const call = await newUser()
    const draft = await created(call)
    assert.deepEqual([draft.status, draft.version, draft.next_run_at], ['draft', 1, null])
    assert.deepEqual([draft.title, draft.schedule.timezone], [morning.query, 'America/New_York'])
    for (const { key, required, done } of draft.setup_checklist) assert.equal(done, required, key)
    const activate = ofSchedule(draft, '/activate')
    const active = await call(`POST ${activate}`)
    assert.deepEqual([active.status, active.body.status], [200, 'active'])
    assert.equal(active.body.next_run_at, draft.next_runs[0])
    assert.equal((await call(`POST ${activate}`)).body.status, 'active')
    const listed = await call<Page<Schedule>>('GET /schedule-chat/list')
    assert.deepEqual(
      listed.body.items.map(({ schedule_id }) => schedule_id),
      [draft.schedule_id],
    )
    const beyond = await call<Page<Schedule>>('GET /schedule-chat/list?skip=1000000&limit=5000')
    assert.deepEqual(beyond.body, { items: [], total: 1, skip: 1_000_000, limit: 100 })
    const all = await call<{ items: Schedule[]; total: number }>('GET /get_schedule_chats?filter_type=prompt')
    assert.equal(all.body.total, 1)
    const paused = await call(`POST ${ofSchedule(draft, '/pause')}`)
    assert.deepEqual(
      [paused.body.status, paused.body.health, paused.body.next_run_at],
      ['paused', 'paused', null],
    )
    assert.equal((await call<Page<Schedule>>('GET /schedule-chat/list')).body.total, 0)
    const ended = await call<Record<string, string[]>>('PUT /disable_schedule_chats', {
      schedule_ids: [draft.schedule_id, unknownId],
    })
    assert.deepEqual(ended.body, {
      disabled: [draft.schedule_id],
      already: [],
      not_found: [unknownId],
      flatten_task_ids: [],
    })
    const again = await call<Record<string, string[]>>('PUT /disable_schedule_chats', {
      schedule_id: draft.schedule_id,
    })
    assert.deepEqual(again.body, {
      disabled: [],
      already: [draft.schedule_id],
      not_found: [],
      flatten_task_ids: [],
    })
    const refused = await call<Conflict>(`POST ${activate}`)
    assert.deepEqual([refused.status, refused.body.code], [409, 'conflict'])
  })

  test('an edit makes another version, and pauses what was active', async () => {
    const call = await newUser()
    const { schedule_id } = await created(call, { status: 'active' })
    const update = (fields: object) => call('PUT /update_schedule_chat', { schedule_id, ...fields })
    const renamed = (await update({ title: 'Mornings', notify: 'failures' })).body
    assert.deepEqual([renamed.version, renamed.status, renamed.title], [1, 'active', 'Mornings'])
    const edited = (await update({ schedule: 'daily at 08:00', expected_version: 1 })).body
    assert.deepEqual([edited.version, edited.status], [2, 'paused'])
    assert.match(String(edited.status_reason), /^edited: /)
    assert.deepEqual([edited.schedule.timezone, edited.query], ['America/New_York', morning.query])
    const stale = await call<Conflict>('PUT /update_schedule_chat', {
      schedule_id,
      query: 'what do i hold',
      expected_version: 1,
    })
    assert.deepEqual([stale.status, stale.body.code, stale.body.version], [409, 'conflict', 2])
    const back = (await update({ query: 'what do i hold', status: 'active' })).body
    assert.deepEqual([back.version, back.status], [3, 'active'])
    const refused = await call<Conflict>(`POST ${ofSchedule({ schedule_id }, '/activate')}`, {
      expected_version: 2,
    })
    assert.deepEqual([refused.status, refused.body.version], [409, 3])
  })

  test('a run answers, and shows what it did', async () => {
    const call = await newUser()
    const schedule = await created(call)
    const started = await call<{ task_id: string; status: string }>(
      `POST ${ofSchedule(schedule, '/run')}`,
      undefined,
      'run-1',
    )
    assert.equal(started.status, 200, JSON.stringify(started.body))
    const again = await call<{ task_id: string }>(`POST ${ofSchedule(schedule, '/run')}`, undefined, 'run-1')
    assert.equal(again.body.task_id, started.body.task_id)
    const path = `/schedule-chat/execution/${started.body.task_id}`
    const run = await eventually(
      async () => {
        const { body } = await call<Execution>(`GET ${path}`)
        return body.status === 'completed' ? body : undefined
      },
      'the run ends',
      60_000,
    )
    assert.deepEqual([run.execution_type, run.number, run.version, run.outcome], ['manual', 1, 1, 'executed'])
    assert.match(run.answer, /Base|hold/i)
    assert.deepEqual([run.credits_used, run.scheduled_for], [1, null])
    assert.ok(run.task_ids.includes(run.chat_id))
    const events = await call<Page<{ seq: number; type: string }>>(`GET ${path}/events?limit=100`)
    const { items } = events.body
    assert.deepEqual(
      items.map(({ seq }) => seq),
      items.map((_, at) => at + 1),
    )
    assert.equal(items.at(-1)?.type, 'done')
    const rest = await call<Page<{ seq: number }>>(`GET ${path}/events?after=${items.length - 1}`)
    assert.deepEqual(
      rest.body.items.map(({ seq }) => seq),
      [items.length],
    )
    const rated = await call<{ rating: number }>(`POST ${path}/rate`, { rating: 'up', comment: 'good' })
    assert.equal(rated.body.rating, 5)
    const executions = await call<Page<Execution>>(
      `GET ${ofSchedule(schedule, '/executions?execution_type=manual&fields=full')}`,
    )
    assert.deepEqual(
      executions.body.items.map(({ rating, answer }) => [rating, answer]),
      [[5, run.answer]],
    )
    const shown = await call<Schedule & { executions: Page<Execution> }>(
      `GET ${ofSchedule(schedule, '?include_executions=true')}`,
    )
    assert.deepEqual([shown.body.executions.total, shown.body.executions.limit], [1, 50])
    const files = await call<{ items: { name: string; url: string }[]; total: number }>(
      `GET ${ofSchedule(schedule, '/artifacts')}`,
    )
    assert.deepEqual(
      files.body.items.map(({ name }) => name),
      ['report.md'],
    )
    assert.match(String((await http(files.body.items[0]!.url)).body.text), /what do i hold/)
    const moved = await call<Page<object>>(`GET ${ofSchedule(schedule, '/transactions')}`)
    assert.deepEqual([moved.body.items, moved.body.limit], [[], 15])
  })

  test('a time that comes runs by itself', async () => {
    const call = await newUser()
    const at = new Date(Date.now() + 2_000).toISOString()
    const { schedule_id } = await created(call, { schedule: { type: 'once', at }, status: 'active' })
    const run = await eventually(
      async () => {
        const { body } = await call<Page<Execution>>(`GET ${ofSchedule({ schedule_id }, '/executions')}`)
        return body.items.find(({ status }) => status === 'completed')
      },
      'the time comes',
      60_000,
    )
    assert.equal(run.execution_type, 'scheduled')
    const { body } = await call(`GET ${ofSchedule({ schedule_id }, '')}`)
    assert.deepEqual([body.status, body.run_count], ['completed', 1])
  })

  test('recommendations are made by a task, and a removed one does not come back', async () => {
    const call = await newUser()
    const schedule = await created(call, { query: 'swap 20 usdc to eth on base' })
    const path = ofSchedule(schedule, '/recommendations')
    type Recommendations = { items: { id: string; category: string }[]; generated_at: string | null }
    assert.deepEqual((await call<Recommendations>(`GET ${path}`)).body.generated_at, null)
    const task = await call<{ status: string; result: { count: number } }>(`POST ${path}/refresh?wait=true`)
    assert.deepEqual([task.body.status, task.body.result.count], ['completed', 1])
    const { items, generated_at } = (await call<Recommendations>(`GET ${path}`)).body
    assert.deepEqual([items.length, items[0]?.category], [1, 'config'])
    assert.notEqual(generated_at, null)
    const one = `${path}/${items[0]?.id}`
    for (const _ of [1, 2])
      assert.deepEqual((await call<object>(`DELETE ${one}`)).body, {
        recommendation_id: items[0]?.id,
        deleted: true,
      })
    await call(`POST ${path}/refresh?wait=true`)
    assert.deepEqual((await call<Recommendations>(`GET ${path}`)).body.items, [])
    assert.equal((await call(`DELETE ${path}/${unknownId}`)).status, 404)
    const asked = await call<{ refreshing: boolean }>(`GET ${path}?refresh=true`)
    assert.equal(asked.status, 200)
  })

  test('what is wrong is refused by its field', async () => {
    const call = await newUser()
    const refusal = async (fields: object) => {
      const { status, body } = await call<Refusal>('POST /schedule_chat', fields)
      assert.equal(status, 422, JSON.stringify(body))
      const [issue] = body.detail
      return { field: issue?.loc.slice(1).join('.'), type: issue?.type, ctx: issue?.ctx ?? {} }
    }
    const is = async (fields: object, field: string, type: string) => {
      const found = await refusal(fields)
      assert.deepEqual([found.field, found.type], [field, type], JSON.stringify(fields))
      return found.ctx
    }
    const { query } = morning
    const unread = await is({ query: 'show me how eth did' }, 'schedule', 'not_understood')
    assert.equal((unread.examples as string[]).length, 3)
    assert.equal((unread.unread as string[]).length, 1)
    const least = await is({ query, schedule: 'every 2 minutes' }, 'schedule', 'least_interval')
    assert.deepEqual([least.minimum, least.unit], [300, 'seconds'])
    await is({ query, schedule: '0 9 30 2 *' }, 'schedule', 'never_fires')
    await is({ query, schedule: { type: 'once', at: '2020-01-01T00:00:00Z' } }, 'schedule', 'never_fires')
    await is({ ...morning, starts_at: '9999-12-31T23:59:59Z' }, 'starts_at', 'value_error')
    await is({ query, schedule: 'on 999999999 December at 9am' }, 'schedule', 'not_understood')
    const zone = await is({ ...morning, timezone: 'Europe/Berlim' }, 'timezone', 'unknown_zone')
    assert.ok((zone.suggestions as string[]).includes('Europe/Berlin'))
    await is({ query, schedule: '0 9 13 * 5' }, 'schedule', 'not_understood')
    await is({ schedule: 'daily at 9' }, 'query', 'exactly_one_of')
    await is({ ...morning, budget_usd: '5' }, 'budget_usd', 'extra_forbidden')
    await is({ ...morning, mode: 'paper' }, 'mode', 'value_error')
    await is({ ...morning, query: '' }, 'query', 'string_too_short')
  })

  test('what others have does not exist, and limits are said', async () => {
    const [call, other] = [await newUser(), await newUser()]
    const { schedule_id } = await created(other)
    for (const route of [
      `GET ${ofSchedule({ schedule_id }, '')}`,
      `GET ${ofSchedule({ schedule_id }, '/executions')}`,
      `GET ${ofSchedule({ schedule_id }, '/transactions')}`,
      `GET ${ofSchedule({ schedule_id }, '/artifacts')}`,
      `GET ${ofSchedule({ schedule_id }, '/recommendations')}`,
      `POST ${ofSchedule({ schedule_id }, '/activate')}`,
      `POST ${ofSchedule({ schedule_id }, '/pause')}`,
      `POST ${ofSchedule({ schedule_id }, '/run')}`,
      `POST ${ofSchedule({ schedule_id }, '/recommendations/refresh')}`,
      `GET /schedule-chat/execution/${unknownId}`,
      `GET /schedule-chat/execution/${unknownId}/events`,
    ]) {
      const { status, body } = await call<Conflict>(route)
      assert.deepEqual([status, body.code], [404, 'not_found'], route)
    }
    const foreign = await call<Conflict>('PUT /update_schedule_chat', { schedule_id, title: 'mine' })
    assert.equal(foreign.status, 404)
    const thread = await call<Conflict>('POST /schedule_chat', { ...morning, thread_id: unknownId })
    assert.equal(thread.status, 404)
    const draft = await created(call, { schedule: undefined, type: 'prompt', status: 'active' })
    assert.deepEqual([draft.status, draft.health], ['draft', 'blocked'])
    assert.match(String(draft.status_reason), /^incomplete: /)
    const early = await call<Conflict>(`POST ${ofSchedule(draft, '/activate')}`)
    assert.deepEqual([early.status, early.body.code], [409, 'setup_incomplete'])
    assert.deepEqual(early.body.missing, ['schedule_valid'])
    for (let n = 0; n < 20; n++) await created(call, { status: 'active' })
    const full = await call<Conflict>('POST /schedule_chat', { ...morning, status: 'active' })
    assert.deepEqual([full.status, full.body.code, full.body.max], [409, 'limit_reached', 20])
  })

  test('schedules end while the kill switch is set, and none of them runs any more', async () => {
    const call = await newUser()
    const at = new Date(Date.now() + 3_000).toISOString()
    const { schedule_id } = await created(call, { schedule: { type: 'once', at }, status: 'active' })
    assert.equal((await call('POST /v1/kill', { on: true })).status, 200)
    const { body } = await call<Record<string, string[]>>('PUT /disable_schedule_chats', { all: true })
    assert.deepEqual(body, { disabled: [schedule_id], already: [], not_found: [], flatten_task_ids: [] })
    const later = { ...morning, schedule: { type: 'once', at: new Date(Date.now() + 4_000).toISOString() } }
    const frozen = await created(call, { ...later, status: 'active' })
    // The schedule after it has had its time, so the time of the disabled one has passed, too.
    const skipped = await eventually(
      async () => {
        const page = await call<Page<Execution & { skip_reason: string }>>(
          `GET ${ofSchedule(frozen, '/executions')}`,
        )
        return page.body.items.find(({ status }) => status === 'cancelled')
      },
      'the later time',
      60_000,
    )
    assert.equal(skipped.skip_reason, 'frozen')
    const none = await call<Page<Execution>>(`GET ${ofSchedule({ schedule_id }, '/executions')}`)
    assert.deepEqual(none.body.items, [])
  })
})
