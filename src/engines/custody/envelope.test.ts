import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { systemRandom } from '#kernel/id.ts'
import { BrokenEnvelope, decrypt, encrypt } from '#kernel/wire/encrypted-envelope.ts'
import { createEnvKek, createKeyEncryptionKeys } from './key-encryption-keys.ts'

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const base64 = (fill: number) => Buffer.alloc(32, fill).toString('base64')

test('sealed data opens only with its key and for its context', () => {
  const plain = fc.uint8Array({ maxLength: 64 })
  fc.assert(
    fc.property(
      bytes(32),
      bytes(12),
      plain,
      fc.tuple(fc.string(), fc.string()),
      (key, iv, secret, [aad, other]) => {
        const blob = encrypt(key, iv, secret, aad)
        assert.deepEqual(Buffer.from(decrypt(key, blob, aad)), Buffer.from(secret))
        if (other !== aad) assert.throws(() => decrypt(key, blob, other), BrokenEnvelope)
        const wrong = Buffer.from(key)
        wrong[0] = (wrong[0] as number) ^ 1
        assert.throws(() => decrypt(wrong, blob, aad), BrokenEnvelope)
      },
    ),
  )
})

test('an envelope with a changed or missing byte does not open', () => {
  const key = Buffer.alloc(32, 1)
  const blob = encrypt(key, Buffer.alloc(12, 2), Buffer.alloc(32, 3), 'place')
  for (let at = 0; at < blob.length; at++) {
    const changed = Buffer.from(blob)
    changed[at] = (changed[at] as number) ^ 1
    assert.throws(() => decrypt(key, changed, 'place'), BrokenEnvelope)
    assert.throws(() => decrypt(key, blob.subarray(0, at), 'place'), BrokenEnvelope)
  }
})

test('a key-encryption key is 32 bytes in base64 and nothing else', () => {
  for (const text of [
    '',
    'secret',
    Buffer.alloc(31).toString('base64'),
    `${base64(1)} `,
    base64(1).slice(0, -1),
  ])
    assert.throws(() => createEnvKek('k', text, systemRandom), RangeError)
})

test('each key-encryption key opens its own envelopes, and ids do not repeat', async () => {
  const [first, second] = [
    createEnvKek('first', base64(1), systemRandom),
    createEnvKek('second', base64(2), systemRandom),
  ]
  const both = createKeyEncryptionKeys(second, first)
  const wrapped = await first.wrap(Buffer.alloc(32, 9), 'place')
  assert.deepEqual(await both.find('first')?.unwrap(wrapped, 'place'), Buffer.alloc(32, 9))
  await assert.rejects(second.unwrap(wrapped, 'place'), BrokenEnvelope)
  assert.equal(both.find('third'), undefined)
  assert.throws(() => createKeyEncryptionKeys(first, first), RangeError)
})
