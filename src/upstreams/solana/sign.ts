import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import type { SvmCrypto } from '#kernel/signer.ts'
import { base58 } from './base58.ts'

/** The RFC 8410 prefix of a 32-byte Ed25519 key. */
const privateFrame = Buffer.from('302e020100300506032b657004220420', 'hex')
const publicFrameBytes = 12

const keyOf = (secret: Uint8Array) => {
  if (secret.length !== 32) throw new RangeError('an Ed25519 secret has 32 bytes')
  const der = Buffer.concat([privateFrame, secret])
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  } finally {
    der.fill(0)
  }
}

/** Injected into custody. Uses the runtime's Ed25519: a chain library would cost 200 ms of start and 30 MB. */
export const svmCrypto: SvmCrypto = {
  async addressOf(secret) {
    const spki = createPublicKey(keyOf(secret)).export({ format: 'der', type: 'spki' })
    return base58(spki.subarray(publicFrameBytes))
  },
  signBytes: async (secret, message) => new Uint8Array(sign(null, message, keyOf(secret))),
}
