import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contracts } from '#contracts.ts'
import { inputReaders } from '#invoke/input-validation.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Entry } from '#kernel/contract/operation.ts'

test('every operation takes the identity fields in body and query', () => {
  const readers = inputReaders(new WeakMap())
  const sent = () => ({ agent_id: 'a', application_id: 'b', user_id: 'c' })
  for (const { entries } of contracts)
    for (const [name, entry] of Object.entries<Entry>(entries)) {
      const { readInput } = readers({ entry } as never)
      try {
        readInput({ path: {}, query: sent(), body: sent() })
      } catch (error) {
        assert.ok(error instanceof Fault, name)
        const unknown = error.issues.filter(({ type }) => type === 'extra_forbidden')
        assert.deepEqual(unknown, [], name)
      }
    }
})
