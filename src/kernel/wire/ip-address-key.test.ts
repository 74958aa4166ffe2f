import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressKey } from './ip-address-key.ts'

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
