import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { changedPlan, newPlan } from './version-from-input.ts'

const now = new Date('2026-12-01T12:00:00Z')
const query = 'how did eth do'
const weekly = newPlan({ query, schedule: 'every Monday at 09:00', timezone: 'Europe/Berlin' }, { now })

const refusalOf = (run: () => unknown) => {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof Fault, String(error))
    const [issue] = error.issues
    return { field: issue?.path.join('.'), type: issue?.type, ctx: issue?.ctx }
  }
  assert.fail('nothing was refused')
}
const refused = (input: Parameters<typeof newPlan>[0]) => {
  const { field, type } = refusalOf(() => newPlan(input, { now }))
  return [field, type]
}

test('a schedule is read from words, from cron and from fields, in the zone that is named', () => {
  assert.deepEqual(weekly.calendar, {
    type: 'calendar',
    times: ['09:00'],
    days: ['mon'],
    timezone: 'Europe/Berlin',
  })
  assert.equal(newPlan({ query, schedule: '0 9 * * 1' }, { now }).calendar?.type, 'cron')
  const fields = { type: 'interval', every_seconds: 600 } as const
  assert.equal(newPlan({ query, schedule: fields }, { now }).calendar?.timezone, 'UTC')
  const inWords = newPlan({ prompt: `every Monday at 09:00 ${query}`, timezone: 'Europe/Berlin' }, { now })
  assert.deepEqual(inWords, weekly)
})

test('what is no schedule is refused by its field', () => {
  assert.deepEqual(refused({ schedule: 'daily at 9' }), ['query', 'exactly_one_of'])
  assert.deepEqual(refused({ query, prompt: query }), ['query', 'exactly_one_of'])
  assert.deepEqual(refused({ query }), ['schedule', 'not_understood'])
  assert.deepEqual(refused({ query, schedule: 'when the moon is full' }), ['schedule', 'not_understood'])
  assert.deepEqual(refused({ query, schedule: 'every minute' }), ['schedule', 'least_interval'])
  assert.deepEqual(refused({ query, schedule: 'daily at 9', timezone: 'Europe/Berlim' }), [
    'timezone',
    'unknown_zone',
  ])
  assert.deepEqual(refused({ query, schedule: { type: 'once', at: '2026-11-30T09:00:00Z' } }), [
    'schedule',
    'never_fires',
  ])
  assert.deepEqual(refused({ query, schedule: '0 9 13 * 5' }), ['schedule', 'not_understood'])
})

test('a prompt without times is a draft that lacks them', () => {
  assert.equal(newPlan({ query, type: 'prompt' }, { now }).calendar, null)
})

test('an update keeps what it leaves out, and null removes a bound', () => {
  const change = (input: Parameters<typeof changedPlan>[1], of = weekly) => changedPlan(of, input, { now })
  assert.deepEqual(change({}), weekly)
  assert.deepEqual(change({ query: 'how did btc do' }), { ...weekly, query: 'how did btc do' })
  assert.equal(change({ timezone: 'Asia/Tokyo' }).calendar?.timezone, 'Asia/Tokyo')
  assert.equal(change({ schedule: 'daily at 8' }).calendar?.timezone, 'Europe/Berlin')
  const bounded = change({ ends_at: '2027-01-01T00:00:00Z' })
  assert.equal(bounded.calendar?.ends_at, '2027-01-01T00:00:00.000Z')
  assert.equal(change({ schedule: 'daily at 8' }, bounded).calendar?.ends_at, '2027-01-01T00:00:00.000Z')
  assert.deepEqual(change({ ends_at: null }, bounded), weekly)
  assert.equal(change({ max_runs: 3 }).maxRuns, 3)
  assert.equal(change({ max_runs: null }, { ...weekly, maxRuns: 3 }).maxRuns, null)
})

test('another schedule does not take over the start of an interval', () => {
  const hourly = newPlan({ query, schedule: 'every hour' }, { now })
  assert.equal(hourly.calendar?.starts_at, '2026-12-01T12:00:00.000Z')
  assert.equal(changedPlan(hourly, { schedule: 'daily at 8' }, { now }).calendar?.starts_at, undefined)
  const later = new Date('2026-12-02T07:30:00Z')
  const zoned = changedPlan(hourly, { timezone: 'Asia/Tokyo' }, { now: later })
  assert.equal(zoned.calendar?.starts_at, hourly.calendar?.starts_at)
})
