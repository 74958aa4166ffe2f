import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limitsPerMinute, memoryPointStore, rateLimits } from './rate-limits.ts'

test('points are spent to the last one, then requests are rejected, and zero means no limit', async () => {
  const limits = rateLimits(
    limitsPerMinute({ auth: 2, read: 0, money: 1, exit: 1, stream: 1 }),
    memoryPointStore(),
  )
  const spend = async (key: string) => (await limits.consume('auth', key)).fault?.code
  assert.deepEqual(
    [await spend('a'), await spend('a'), await spend('a'), await spend('b')],
    [undefined, undefined, 'rate_limited', undefined],
  )
  assert.deepEqual(await limits.consume('read', 'a'), {})
  await limits.consume('money', 'user:a')
  const { fault, budget } = await limits.consume('money', 'user:a')
  assert.deepEqual([fault?.extras.budget, fault?.extras.owner], ['money', 'user'])
  assert.ok(Number(fault?.extras.retry_after) >= 1)
  assert.deepEqual([budget?.name, budget?.points, budget?.left], ['money', 1, 0])
  await limits.consume('money', 'pages:a')
  assert.equal((await limits.consume('money', 'pages:a')).fault?.extras.owner, 'user')
  await limits.consume('money', '192.0.2.1')
  assert.equal((await limits.consume('money', '192.0.2.1')).fault?.extras.owner, 'address')
})

test('a call that takes several points spends its budget sooner', async () => {
  const limits = rateLimits(
    limitsPerMinute({ auth: 1, read: 100, money: 1, exit: 1, stream: 1 }),
    memoryPointStore(),
  )
  assert.equal((await limits.consume('read', 'user:a', 50)).budget?.left, 50)
  assert.equal((await limits.consume('read', 'user:a', 50)).fault, undefined)
  assert.equal((await limits.consume('read', 'user:a')).fault?.code, 'rate_limited')
  assert.equal((await limits.consume('read', 'user:b', 50)).fault, undefined)
})
