import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { planSlots } from '#engines/strategy-slots/plan-slots.ts'
import { later } from '#kernel/clock.ts'
import type { Calendar } from './calendar-types.ts'
import { nextSlot, slotsBetween } from './slots.ts'

const dayMs = 86_400_000
const newYork = 'America/New_York'
const cron = (text: string): Calendar => ({ type: 'cron', cron: text, timezone: newYork })

/** Counts how often a local time is computed, which takes most of the time of a search. */
function countLocalTimes(run: () => void): number {
  const { prototype } = Intl.DateTimeFormat
  const format = Object.getOwnPropertyDescriptor(prototype, 'format')!
  let count = 0
  Object.defineProperty(prototype, 'format', {
    ...format,
    get() {
      count += 1
      return format.get!.call(this)
    },
  })
  try {
    run()
  } finally {
    Object.defineProperty(prototype, 'format', format)
  }
  return count
}

test('the slots of 200 schedules that five days have missed are counted within one transaction', () => {
  const first = new Date('2026-10-30T04:00:00Z')
  const now = later(first, 5 * dayMs)
  const rows = Array.from({ length: 200 }, (_, n) => cron(`${n % 5}-59/5 * * * *`))
  let counted = 0
  const times = countLocalTimes(() => {
    for (const calendar of rows) {
      const { missed, run } = planSlots(
        {
          next_at: nextSlot(calendar, later(first, -1))!,
          following_at: null,
          isRunning: false,
          calendar,
          on_missed: 'run_latest',
          catch_up_seconds: 600,
        },
        now,
        (each, after) => nextSlot(each as Calendar, after),
      )
      counted += (missed?.count ?? 0) + (run ? 1 : 0)
    }
  })
  // Five days and an hour that the clock repeats, of which the first slot is due for one phase of the five alone.
  assert.ok(counted >= 200 * 5 * 288 && counted <= 200 * (5 * 288 + 1), `${counted} slots`)
  // A day takes a few looks at the local clock, and a day near a change of the clock a search for it.
  assert.ok(times < 200 * 100, `${times} local times for ${counted} slots`)
})

test('a search finds the slot that a new search finds, whatever was searched before', () => {
  const calendars: Calendar[] = [
    cron('*/5 * * * *'),
    cron('15,45 1-2 * * mon,sun'),
    { type: 'calendar', times: ['00:00', '01:30', '02:15', '02:45'], timezone: newYork },
    { ...cron('0 9 * * *'), starts_at: '2026-10-31T12:00:00.000Z', ends_at: '2026-11-02T14:00:00.000Z' },
  ]
  const search = fc.record({
    calendar: fc.constantFrom(...calendars),
    start: fc.constantFrom('2026-03-06T00:00:00Z', '2026-10-30T00:00:00Z'),
    minutes: fc.integer({ min: 0, max: 5 * 1_440 }),
  })
  fc.assert(
    fc.property(fc.array(search, { maxLength: 20 }), (searches) => {
      for (const { calendar, start, minutes } of searches) {
        const after = later(new Date(start), minutes * 60_000)
        const [expected] = slotsBetween(calendar, after)
        assert.deepEqual(nextSlot(calendar, after), expected)
      }
    }),
  )
})
