import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressKey, limitsPerMinute, pointsInMemory, rateLimits } from './limits.ts'

test('an IPv6 network counts as one address, an IPv4 address as itself', () => {
  const network = 'address:2001:db8:1:2::/64'
  for (const ip of ['2001:db8:1:2::1', '2001:db8:1:2:a:b:c:d', '2001:db8:1:2::'])
    assert.equal(addressKey(ip), network)
  assert.notEqual(addressKey('2001:db8:1:3::1'), network)
  assert.equal(addressKey('::1'), 'address:0:0:0:0::/64')
  assert.equal(addressKey('fe80::1'), 'address:fe80:0:0:0::/64')
  assert.equal(addressKey('192.0.2.1'), 'address:192.0.2.1')
  assert.equal(addressKey('::ffff:192.0.2.1'), 'address:::ffff:192.0.2.1')
})

test('points are spent to the last one, then refused, and zero means no limit', async () => {
  const limits = rateLimits(
    limitsPerMinute({ auth: 2, read: 0, money: 1, exit: 1, stream: 1 }),
    pointsInMemory(),
  )
  const spend = async (key: string) => (await limits.spend('auth', key)).fault?.code
  assert.deepEqual(
    [await spend('a'), await spend('a'), await spend('a'), await spend('b')],
    [undefined, undefined, 'rate_limited', undefined],
  )
  assert.deepEqual(await limits.spend('read', 'a'), { headers: {} })
  assert.equal((await limits.exhausted('money', 'a')).fault, undefined)
  await limits.spend('money', 'a')
  const { fault } = await limits.exhausted('money', 'a')
  assert.equal(fault?.code, 'rate_limited')
  assert.ok(Number(fault?.extras.retry_after) >= 1)
})
