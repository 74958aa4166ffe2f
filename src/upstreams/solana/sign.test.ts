import assert from 'node:assert/strict'
import { createPublicKey, verify } from 'node:crypto'
import { test } from 'node:test'
import { createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit'
import fc from 'fast-check'
import { base58 } from './base58.ts'
import { svmCrypto } from './sign.ts'

test('the address and the signature equal the first vector of RFC 8032', async () => {
  const secret = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')
  const publicKey = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')
  assert.equal(await svmCrypto.addressOf(secret), base58(publicKey))
  const signature = await svmCrypto.signBytes(secret, new Uint8Array())
  assert.equal(
    Buffer.from(signature).toString('hex'),
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  )
})

test('the public Solana library derives the same address from any secret', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 32, maxLength: 32 }), async (secret) => {
      const signer = await createKeyPairSignerFromPrivateKeyBytes(secret)
      assert.equal(await svmCrypto.addressOf(secret), signer.address)
    }),
    { numRuns: 20 },
  )
})

test('a signature verifies under the address and under no other message', async () => {
  const secret = new Uint8Array(32).fill(7)
  const message = Buffer.from('a message')
  const signature = await svmCrypto.signBytes(secret, message)
  const { createPrivateKey } = await import('node:crypto')
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), secret])
  const key = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }))
  assert.ok(verify(null, message, key, signature))
  assert.ok(!verify(null, Buffer.from('another'), key, signature))
})

test('a secret of another length is rejected', async () => {
  await assert.rejects(async () => svmCrypto.addressOf(new Uint8Array(64)), RangeError)
})
