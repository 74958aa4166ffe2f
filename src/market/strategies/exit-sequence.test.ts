import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nextExitStep } from './exit-sequence.ts'

/** What the venue does with an exit, or before the next question. */
const event = fc.constantFrom(
  'fills' as const,
  'fills a part' as const,
  'rejects' as const,
  'answers late' as const,
  'fills the entry' as const,
  'triggers the stop' as const,
)

test('a position that has to end keeps its stop until it is gone, and is never turned around', () => {
  fc.assert(
    fc.property(
      fc.bigInt(0n, 1_000n),
      fc.boolean(),
      fc.array(event, { maxLength: 40 }),
      (units, hasEntry, events) => {
        const venue = {
          position: units,
          exiting: 0n,
          entries: hasEntry ? ['entry'] : [],
          stop: units > 0n || hasEntry,
        }
        const settle = (filled: bigint) => {
          venue.exiting = 0n
          venue.position -= filled < venue.position ? filled : venue.position
        }
        const next = () =>
          nextExitStep({
            positionUnits: venue.position,
            exitingUnits: venue.exiting,
            entries: venue.entries,
            protective: venue.stop ? ['stop'] : [],
          })
        /** Does one step, and lets the venue answer. */
        const advance = (answer: (typeof events)[number]) => {
          const step = next()
          if (step.step === 'cancel' && step.orders.includes('entry')) {
            if (answer === 'fills the entry') venue.position += 5n
            venue.entries = []
          } else if (step.step === 'cancel') {
            assert.equal(venue.position, 0n, 'the stop goes with nothing left to protect')
            venue.stop = false
          } else if (step.step === 'exit') {
            assert.equal(step.units + venue.exiting, venue.position, 'never more than what is open')
            venue.exiting += step.units
          }
          if (answer === 'fills') settle(venue.exiting)
          if (answer === 'fills a part') settle(venue.exiting / 2n)
          if (answer === 'rejects') settle(0n)
          if (answer === 'triggers the stop' && venue.stop) venue.position = 0n
          if (venue.exiting > venue.position) venue.exiting = venue.position
          assert.ok(venue.position === 0n || venue.stop, 'a position without a stop')
        }
        for (const answer of events) advance(answer)
        for (let steps = 0; next().step !== 'end'; steps++) {
          assert.ok(steps < 6, 'it ends once the venue fills')
          advance('fills')
        }
        assert.deepEqual([venue.position, venue.exiting, venue.entries, venue.stop], [0n, 0n, [], false])
      },
    ),
    { numRuns: 500 },
  )
})

test('an exit of unknown outcome is waited for, and only the rest is sent', () => {
  const view = { positionUnits: 10n, exitingUnits: 4n, entries: [], protective: ['stop'] }
  assert.deepEqual(nextExitStep(view), { step: 'exit', units: 6n })
  assert.deepEqual(nextExitStep({ ...view, exitingUnits: 10n }), { step: 'wait' })
  assert.deepEqual(nextExitStep({ ...view, positionUnits: 0n, exitingUnits: 0n }), {
    step: 'cancel',
    orders: ['stop'],
  })
})
