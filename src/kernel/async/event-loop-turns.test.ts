import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLoopTurns } from './event-loop-turns.ts'

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

test('a user who asks once is served before the second question of another', async () => {
  const inTurn = createLoopTurns()
  const order: string[] = []
  const ask = async (user: string) => {
    await inTurn(user)
    order.push(user)
  }
  await Promise.all([...Array.from({ length: 50 }, () => ask('often')), ask('rarely')])
  assert.deepEqual(order.indexOf('rarely'), 1)
  assert.equal(order.length, 51)
})
