import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signupGrants } from './signup-grants.ts'

test('an address gets a hundred grants a day, and an IPv6 network counts as one address', () => {
  const at = { ms: 0 }
  const grants = signupGrants({ clock: { now: () => new Date(at.ms) } })
  const taken = (ip: string, times: number) =>
    Array.from({ length: times }, () => grants.take(ip)).filter(Boolean).length
  assert.equal(taken('2001:db8::1', 60) + taken('2001:db8::ffff', 60), 100)
  assert.equal(taken('192.0.2.1', 1), 1)
  at.ms += 86_400_000
  assert.equal(taken('2001:db8::1', 1), 1)
})
