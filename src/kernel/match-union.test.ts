import assert from 'node:assert/strict'
import { test } from 'node:test'
import { match } from './match-union.ts'

type Reply = { type: 'filled'; size: string } | { type: 'rejected'; message: string }

const text = (reply: Reply): string =>
  match(reply, {
    filled: ({ size }) => `filled ${size}`,
    rejected: ({ message }) => `rejected: ${message}`,
  })

test('a union is matched by its type, and each case gets the members of its own type', () => {
  assert.equal(text({ type: 'filled', size: '2' }), 'filled 2')
  assert.equal(text({ type: 'rejected', message: 'no margin' }), 'rejected: no margin')
})

test('a missing case does not compile', () => {
  const reply: Reply = { type: 'filled', size: '2' }
  // @ts-expect-error the case `rejected` is missing
  assert.equal(match(reply as Reply, { filled: () => 1 }), 1)
})
