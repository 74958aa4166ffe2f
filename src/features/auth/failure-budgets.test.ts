import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BudgetOwner, Fault } from '#kernel/contract/fault.ts'
import { createAttempts } from './failure-budgets.ts'

const at = { ms: 0 }
const clock = { now: () => new Date(at.ms) }
const budgetOf = (key: string, failuresMax: number, owner: BudgetOwner = 'user') => ({
  key,
  failuresMax,
  owner,
})
const refused = (run: () => void): Record<string, unknown> | undefined => {
  try {
    run()
    return undefined
  } catch (error) {
    assert.ok(error instanceof Fault)
    return error.extras
  }
}

test('a failure beyond the budget names its owner and when it is full again', () => {
  const { fail } = createAttempts({ clock, windowMs: 60_000 })
  const agent = [budgetOf('agent', 3)]
  for (let turn = 0; turn < 3; turn++)
    assert.equal(
      refused(() => fail(agent)),
      undefined,
    )
  at.ms += 1_000
  assert.deepEqual(
    refused(() => fail(agent)),
    { budget: 'failed_proofs', owner: 'user', retry_after: 59 },
  )
  assert.equal(
    refused(() => fail([budgetOf('other', 3)])),
    undefined,
  )
  at.ms += 59_000
  assert.equal(
    refused(() => fail(agent)),
    undefined,
  )
})

test('memory is bounded, and an address that keeps failing stays counted', () => {
  const { fail } = createAttempts({ clock, entriesMax: 10 })
  const address = budgetOf('address', 50, 'address')
  for (let turn = 0; turn < 50; turn++) fail([budgetOf(`agent ${turn}`, 3), address])
  assert.equal(refused(() => fail([budgetOf('one more', 3), address]))?.owner, 'address')
})
