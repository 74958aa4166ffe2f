import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { later } from '#kernel/clock.ts'
import { type DueSlots, type NextSlot, planSlots } from './plan-slots.ts'

const minuteMs = 60_000
const start = new Date('2026-03-02T09:00:00Z')
/** Every hour on the hour, counted from the epoch. */
const hourly: NextSlot = (calendar, after) => {
  const { ms } = calendar as { ms: number }
  return new Date((Math.floor(after.getTime() / ms) + 1) * ms)
}
const due = (fields: Partial<DueSlots> = {}): DueSlots => ({
  next_at: start,
  following_at: null,
  isRunning: false,
  calendar: { ms: 60 * minuteMs },
  on_missed: 'run_latest',
  catch_up_seconds: 600,
  ...fields,
})
const at = (minutes: number) => later(start, minutes * minuteMs)

describe('the plan of the slots that are due', () => {
  test('runs a slot that is on time, and takes the following one from the run before', () => {
    assert.deepEqual(planSlots(due(), at(0), hourly), { run: start, next: at(60) })
    const known = due({ following_at: at(45) })
    assert.equal(planSlots(known, at(0), hourly).next?.getTime(), at(45).getTime())
  })

  test('makes up for the newest missed slot, and counts the older ones together', () => {
    const plan = planSlots(due(), at(3 * 60 + 9), hourly)
    assert.deepEqual(plan, {
      run: at(180),
      missed: { first: start, last: at(120), count: 3 },
      next: at(240),
    })
  })

  test('skips a slot that is too old, or that its owner does not want made up for', () => {
    const all = { first: start, last: start, count: 1 }
    assert.deepEqual(planSlots(due(), at(11), hourly), { missed: all, next: at(60) })
    const skips = due({ on_missed: 'skip' })
    assert.deepEqual(planSlots(skips, at(2), hourly), { missed: all, next: at(60) })
    assert.equal(planSlots(skips, at(0.5), hourly).run, start)
    assert.equal(planSlots(due({ catch_up_seconds: 0 }), at(2), hourly).run, undefined)
  })

  test('does not run a slot that meets a run', () => {
    assert.deepEqual(planSlots(due({ isRunning: true }), at(61), hourly), {
      overlap: at(60),
      missed: { first: start, last: start, count: 1 },
      next: at(120),
    })
  })

  test('ends with the end of the calendar', () => {
    assert.deepEqual(
      planSlots(due(), at(0), () => undefined),
      { run: start },
    )
  })

  test('has each slot once, whenever the strategy is looked at', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3 * 24 * 60 }), { maxLength: 20 }), (looks) => {
        const seen: number[] = []
        let next: Date | undefined = start
        for (const minutes of looks.toSorted((one, other) => one - other)) {
          const now = at(minutes)
          if (!next || next > now) continue
          const plan = planSlots(due({ next_at: next }), now, hourly)
          const { missed } = plan
          for (let n = 0; n < (missed?.count ?? 0); n++)
            seen.push(later(missed!.first, n * 60 * minuteMs).getTime())
          if (plan.run) seen.push(plan.run.getTime())
          next = plan.next
        }
        const expected = Array.from({ length: seen.length }, (_, n) => at(60 * n).getTime())
        assert.deepEqual(seen, expected)
      }),
    )
  })

  test('counts a long outage in bounded time', () => {
    let calls = 0
    const everyMinute: NextSlot = (calendar, after) => {
      calls += 1
      return hourly(calendar, after)
    }
    const plan = planSlots(due({ calendar: { ms: minuteMs } }), at(365 * 24 * 60), everyMinute)
    assert.deepEqual(plan.run, at(365 * 24 * 60))
    assert.ok(calls < 4_000, `${calls} slots were looked up`)
  })
})
