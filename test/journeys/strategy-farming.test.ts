/** Day trades on paper: slots each quarter of an hour of the world, and nothing over the night of New York. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, freshGateway, newAgent } from '../harness/gateway.ts'
import { paperTrader } from './strategy-paper.ts'

const quarterMs = 15 * 60_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** An evening without a pullback has no entry; among so many evenings one has. */
const eveningsMax = 12

const newYorkHour = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'America/New_York',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
/** The milliseconds since midnight in New York. */
const sinceMidnight = (ms: number): number => {
  const [hours = 0, minutes = 0] = newYorkHour.format(ms).split(':').map(Number)
  return (hours * 60 + minutes) * 60_000
}

test('day trades are closed five minutes before midnight, and decide on each close before that', async () => {
  await using gateway = await freshGateway({}, { ownWorld: 'days pass in it' })
  const trader = await paperTrader(gateway, await newAgent(gateway.url))
  const schedule = await trader.create({
    type: 'day_trade_farming',
    query: 'day trades of BTC',
    timezone: 'America/New_York',
    on_missed: 'skip',
    config: { asset: 'BTC', order_notional_usd: '300', leverage: 3 },
  })
  const isOpen = async () => {
    const runs = await trader.executions(schedule)
    return runs.some(({ decision }) => decision?.action === 'enter')
  }
  const exits = async () =>
    (await trader.executions(schedule)).filter(({ execution_type: type }) => type === 'exit')
  const reasons = new Set<string>()
  for (let evening = 0; evening < eveningsMax && (await exits()).length === 0; evening++) {
    const midnight = (await trader.nowMs()) + dayMs - sinceMidnight(await trader.nowMs())
    // Entries of the last hours are rarely closed by their stop or target before the day ends.
    await trader.advanceTo(midnight - 5 * quarterMs + 60_000)
    for (let slot = 0; slot < 4; slot++) {
      const run = await trader.passSlot(schedule)
      assert.notEqual(run.status, 'failed', JSON.stringify(run))
      if (run.decision) reasons.add(run.decision.reason)
    }
    await trader.advanceTo(midnight - 4 * 60_000)
    if (await isOpen())
      await eventually(
        async () => (await exits()).every(({ status }) => status === 'completed') || undefined,
        'exits',
      )
    await trader.advanceTo(midnight + 60_000)
  }
  const found = await exits()
  assert.ok(found.length > 0, [...reasons].join(', '))
  for (const { outcome, decision } of found)
    assert.deepEqual([outcome, decision?.reason], ['executed', 'day_ends'])
})
