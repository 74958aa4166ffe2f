/** A purchase on paper at each slot that the world advances to, until a guard closes what it has bought. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, freshGateway, newAgent } from '../harness/gateway.ts'
import { venueControl } from '../harness/venue-gateway.ts'
import { type Page, paperTrader } from './strategy-paper.ts'

type Transaction = { mode?: string; is_exit?: boolean; reason?: string }
type Event = { type: string; data: { schedule_id?: string; guard?: string } }

test('a strategy buys on paper day by day, and a guard that trips closes what it has', async () => {
  await using gateway = await freshGateway({}, { ownWorld: 'days pass in it' })
  const venue = venueControl(gateway.world)
  await venue('POST', '/price', { coin: 'ETH', price: 3_000 })
  const trader = await paperTrader(gateway, await newAgent(gateway.url))
  const schedule = await trader.create({
    type: 'dca',
    query: 'buy ETH',
    schedule: 'every day at 09:00',
    timezone: 'America/New_York',
    config: { asset: 'ETH', amount_usd: '100' },
    guards: { max_loss_usd: '20' },
  })
  assert.deepEqual([schedule.type, schedule.mode, schedule.status], ['dca', 'paper', 'active'])
  for (const _ of [1, 2, 3]) {
    const { status, outcome, decision, mode } = await trader.passSlot(schedule)
    assert.deepEqual(
      [status, outcome, mode, decision?.action],
      ['completed', 'executed', 'paper', 'enter'],
      decision?.reason,
    )
  }
  await venue('POST', '/price', { coin: 'ETH', price: 2_700 })
  const exit = await eventually(async () => {
    const found = (await trader.executions(schedule)).find(({ execution_type: type }) => type === 'exit')
    return found?.status === 'completed' ? found : undefined
  }, 'the exit')
  assert.deepEqual([exit.outcome, exit.decision?.reason], ['executed', 'guard_max_loss'])
  const { skip_reason: reason } = await trader.passSlot(schedule)
  assert.equal(reason, 'guard')
  const { events } = await trader.call<{ events: Event[] }>('GET /v1/notifications?limit=100')
  const tripped = events.filter(({ type }) => type === 'schedule.guard_tripped')
  assert.deepEqual(
    tripped.map(({ data }) => [data.schedule_id, data.guard]),
    [[schedule.schedule_id, 'max_loss']],
  )
  const path = `/schedule-chat/schedule/${schedule.schedule_id}/transactions`
  await trader.call<Page<Transaction>>(`GET ${path}`)
})
