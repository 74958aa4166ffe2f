import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/fault.ts'
import { attempts } from './attempts.ts'

const at = { ms: 0 }
const clock = { now: () => new Date(at.ms) }
const refused = (run: () => void) => {
  try {
    run()
    return undefined
  } catch (error) {
    return error instanceof Fault ? error.extras.retry_after : error
  }
}

test('the last failure that is borne locks the key until the window ends', () => {
  const counted = [{ key: 'agent', most: 3 }]
  const { admit, fail } = attempts({ clock, windowMs: 60_000 })
  for (let turn = 0; turn < 3; turn++) {
    admit(counted)
    fail(counted)
  }
  at.ms += 1_000
  assert.equal(
    refused(() => admit(counted)),
    59,
  )
  assert.equal(
    refused(() => admit([{ key: 'other', most: 3 }])),
    undefined,
  )
  at.ms += 59_000
  assert.equal(
    refused(() => admit(counted)),
    undefined,
  )
})

test('memory is bounded, and an address that goes on failing stays counted', () => {
  const { admit, fail } = attempts({ clock, entriesMax: 10 })
  const address = { key: 'address', most: 50 }
  for (let turn = 0; turn < 50; turn++) fail([{ key: `agent ${turn}`, most: 3 }, address])
  assert.equal(typeof refused(() => admit([address])), 'number')
})
