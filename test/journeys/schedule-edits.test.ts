/**
 * Edits, pauses and an end beside due slots, over HTTP. In n8n (#30607) the old and the new version of a workflow both
 * fired, and went on after it was deactivated.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bearer, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'

type Schedule = { schedule_id: string; version: number; status: string }
type Execution = {
  execution_id: string
  version: number
  scheduled_for: string
  status: string
  skip_reason: string | null
}

const edits = 20
const leadMs = 1_500
/** Before, at and after the slot, and while its run is checked. */
const offsetsMs = [-120, -40, -10, 0, 10, 40, 150]

test('a slot runs by the version that has it or not at all, and none after the end was answered', async (t) => {
  await using gateway = await freshGateway()
  const headers = bearer(await newAgent(gateway.url))
  const call = async <B = Schedule>(method: string, path: string, body?: object): Promise<B> => {
    const reply = await http<B>(`${gateway.url}${path}`, { method, headers, ...(body && { body }) })
    assert.equal(reply.status, 200, `${method} ${path}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  const executionsOf = async ({ schedule_id }: Schedule) =>
    (await call<{ items: Execution[] }>('GET', `/schedule-chat/schedule/${schedule_id}/executions?limit=100`))
      .items
  const slots = new Map<number, number>()
  const once = () => {
    // A time has whole seconds.
    const atMs = Math.ceil((Date.now() + leadMs) / 1_000) * 1_000
    return { atMs, schedule: { type: 'once', at: new Date(atMs).toISOString() } }
  }
  const first = once()
  const made = await call('POST', '/schedule_chat', {
    query: 'credits left?',
    schedule: first.schedule,
    status: 'active',
  })
  slots.set(made.version, first.atMs)
  let slotMs = first.atMs
  const reached = (atMs: number) => eventually(async () => Date.now() >= atMs || undefined, 'the moment')
  for (let edit = 0; edit < edits; edit++) {
    await reached(slotMs + offsetsMs[edit % offsetsMs.length]!)
    const { schedule_id } = made
    if (edit % 4 === 3)
      // What has run is completed, and cannot be paused any more.
      await http(`${gateway.url}/schedule-chat/schedule/${schedule_id}/pause`, { method: 'POST', headers })
    const { atMs, schedule } = once()
    const body = { schedule_id, schedule, status: 'active' }
    const edited = await call('PUT', '/update_schedule_chat', body)
    assert.equal(edited.status, 'active')
    slots.set(edited.version, atMs)
    slotMs = atMs
  }
  await reached(slotMs)
  await call('PUT', '/disable_schedule_chats', { schedule_id: made.schedule_id })
  const atEnd = await executionsOf(made)

  const later = once()
  const after = await call('POST', '/schedule_chat', {
    query: 'credits left?',
    schedule: later.schedule,
    status: 'active',
  })
  await eventually(
    async () => (await executionsOf(after)).some(({ status }) => status === 'completed') || undefined,
    'a run of a later schedule',
  )
  const executions = await executionsOf(made)
  const idsOf = (list: readonly Execution[]) => list.map(({ execution_id }) => execution_id)
  assert.deepEqual(idsOf(executions), idsOf(atEnd), 'a slot was recorded after the end was answered')
  assert.equal(new Set(executions.map(({ scheduled_for }) => scheduled_for)).size, executions.length)
  for (const { version, scheduled_for, status, skip_reason } of executions) {
    assert.equal(Date.parse(scheduled_for), slots.get(version), 'a slot of another version')
    assert.ok(status === 'completed' || status === 'cancelled', `${status} ${skip_reason}`)
  }
  const ran = executions.filter(({ status }) => status === 'completed').length
  t.diagnostic(`${edits} edits, ${executions.length} slots recorded, ${ran} of them ran`)
  assert.ok(ran > 0)
})
