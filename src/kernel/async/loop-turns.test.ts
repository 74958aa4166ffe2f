import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLoopTurns } from './loop-turns.ts'

test('between the work of two callers, the event loop serves what else has arrived', async () => {
  const inTurn = createLoopTurns()
  const order: string[] = []
  const work = ['first', 'second', 'third'].map(async (name) => {
    await inTurn()
    order.push(name)
    setImmediate(() => order.push(`after ${name}`))
  })
  await Promise.all(work)
  assert.deepEqual(order, ['first', 'after first', 'second', 'after second', 'third'])
})
