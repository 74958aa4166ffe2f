import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSecret, mailboxIdOf, newSecret, seal, unseal } from './sealed-message.ts'

test('a message is read with its secret only, and whole only', () => {
  const secret = newSecret()
  assert.ok(isSecret(secret) && !mailboxIdOf(secret).includes(secret))
  const sealed = seal(secret, '{"a":"ä"}')
  assert.equal(unseal(secret, sealed), '{"a":"ä"}')
  assert.ok(!Buffer.from(sealed).includes('"a"'))
  assert.throws(() => unseal(newSecret(), sealed))
  const changed = Uint8Array.from(sealed)
  changed[14] = (changed[14] ?? 0) ^ 1
  assert.throws(() => unseal(secret, changed))
})
