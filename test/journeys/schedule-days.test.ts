/** Days of a schedule, which the control port of the world advances: tokens, tasks and limits stay on real time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bearer, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { worldOf } from './world.ts'

type Execution = { execution_id: string; scheduled_for: string; status: string; skip_reason: string | null }
type Schedule = { schedule_id: string; status: string; next_run_at: string | null; run_count: number }
type Event = { type: string; created_at: string; data: { schedule_id?: string; skip_reason?: string } }

const daySeconds = 86_400

test('a schedule runs each day that the world advances, reports a missed one once, and its token stays valid', async () => {
  await using gateway = await freshGateway({}, { ownWorld: 'days pass in it' })
  const { advance } = await worldOf(gateway.world)
  const headers = bearer(await newAgent(gateway.url))
  const created = await http<Schedule>(`${gateway.url}/schedule_chat`, {
    method: 'POST',
    headers,
    body: { query: 'credits left?', schedule: 'every day at 09:00 UTC', status: 'active' },
  })
  assert.equal(created.body.status, 'active', JSON.stringify(created.body))
  const { schedule_id } = created.body
  const get = async <B>(path: string): Promise<B> => {
    const { status, body } = await http<B>(`${gateway.url}${path}`, { headers })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const path = `/schedule-chat/schedule/${schedule_id}`
  const executions = async () => (await get<{ items: Execution[] }>(`${path}/executions`)).items
  const ended = (count: number) =>
    eventually(
      async () => {
        const items = await executions()
        return items.length >= count && items.every(({ status }) => !/pending|running/.test(status))
          ? items
          : undefined
      },
      `${count} executions`,
      60_000,
    )
  /** Passes the next slot by a minute. */
  const passSlot = async (days: number) => {
    const next = Date.parse((await get<Schedule>(path)).next_run_at!)
    const { now_ms } = (await http<{ now_ms: number }>(`${gateway.world}/time`)).body
    await advance(Math.ceil((next - now_ms) / 1_000) + days * daySeconds + 60)
  }
  for (const count of [1, 2]) {
    await passSlot(0)
    await ended(count)
  }
  await passSlot(3)
  const items = await ended(4)
  assert.deepEqual(
    items.map(({ status, skip_reason }) => [status, skip_reason]),
    [
      ['completed', null],
      ['cancelled', 'missed'],
      ['completed', null],
      ['completed', null],
    ],
  )
  const days = items.map(({ scheduled_for }) => scheduled_for)
  for (const day of days) assert.match(day, /T09:00:00/)
  assert.equal(Date.parse(days[0]!) - Date.parse(days[1]!), daySeconds * 1_000)
  assert.equal((await get<Schedule>(path)).run_count, 3)
  const { events } = await get<{ events: Event[] }>('/v1/notifications?limit=100')
  const own = events.filter(({ data }) => data.schedule_id === schedule_id)
  assert.equal(own.filter(({ type }) => type === 'schedule.run_skipped').length, 1)
  assert.equal(own.filter(({ type }) => type === 'schedule.run_finished').length, 3)
  for (const { created_at } of events) assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 600_000)
})
