/** Day trades on paper: a slot each quarter of an hour of the world, and nothing over the night of New York. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, freshGateway, newAgent } from '../harness/gateway.ts'
import { venueControl } from '../harness/venue-gateway.ts'
import { openIdentityRecords } from '../proof/support/identity-records.ts'
import { plantCandles, pullbackOfUptrend } from '../venue/planted-candles.ts'
import { paperTrader } from './strategy-paper.ts'

const minuteMs = 60_000
const quarterMs = 15 * minuteMs
const dayMs = 86_400_000
const bitcoin = 100_000

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

test('a day trade enters on a close, and is closed five minutes before the midnight of New York', async () => {
  await using gateway = await freshGateway({}, { ownWorld: 'days pass in it' })
  await using records = await openIdentityRecords(gateway.databaseUrl)
  await venueControl(gateway.world)('POST', '/price', { coin: 'BTC', price: bitcoin })
  const trader = await paperTrader(gateway, await newAgent(gateway.url))
  const schedule = await trader.create({
    type: 'day_trade_farming',
    query: 'day trades of BTC',
    timezone: 'America/New_York',
    on_missed: 'skip',
    config: { asset: 'BTC', order_notional_usd: '300', leverage: 3 },
  })
  const startMs = await trader.nowMs()
  const midnight = startMs - sinceMidnight(startMs) + 2 * dayMs
  await trader.advanceTo(midnight - 4 * quarterMs + 2 * minuteMs)
  await plantCandles(records.db, {
    market: 'BTC',
    span: '15m',
    closes: pullbackOfUptrend(bitcoin),
    wick: bitcoin * 0.004,
    endMs: Date.parse(await trader.nextSlot(schedule)),
  })
  const entered = await trader.passSlot(schedule)
  assert.deepEqual(
    [entered.status, entered.outcome, entered.decision?.reason],
    ['completed', 'executed', 'pullback_of_uptrend'],
  )
  assert.equal((await trader.passSlot(schedule)).decision?.reason, 'position_open')
  await trader.advanceTo(midnight - 4 * minuteMs)
  const exit = await eventually(async () => {
    const found = (await trader.executions(schedule)).find(({ execution_type: type }) => type === 'exit')
    return found?.status === 'completed' ? found : undefined
  }, 'the exit of the day')
  assert.deepEqual([exit.outcome, exit.decision?.reason], ['executed', 'day_ends'])
})
