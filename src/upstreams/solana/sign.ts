import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import type { SvmCrypto } from '#kernel/task/signer.ts'
import { base58, bytesOfAddress } from './base58.ts'

/** The RFC 8410 prefixes of the 32 bytes of an Ed25519 key. */
const privateFrame = Buffer.from('302e020100300506032b657004220420', 'hex')
const publicFrame = Buffer.from('302a300506032b6570032100', 'hex')

const keyOf = (secret: Uint8Array) => {
  if (secret.length !== 32) throw new RangeError('an Ed25519 secret has 32 bytes')
  const der = Buffer.concat([privateFrame, secret])
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  } finally {
    der.fill(0)
  }
}

export function addressOfSecret(secret: Uint8Array): string {
  const spki = createPublicKey(keyOf(secret)).export({ format: 'der', type: 'spki' })
  return base58(spki.subarray(publicFrame.length))
}

export const signWith = (secret: Uint8Array, message: Uint8Array): Uint8Array =>
  new Uint8Array(sign(null, message, keyOf(secret)))

export function isSignedBy(address: string, message: Uint8Array, signature: Uint8Array): boolean {
  const der = Buffer.concat([publicFrame, bytesOfAddress(address)])
  return verify(null, message, createPublicKey({ key: der, format: 'der', type: 'spki' }), signature)
}

/** Serves custody with the runtime's Ed25519, because a chain library would cost 200 ms of start and 30 MB. */
export const svmCrypto: SvmCrypto = {
  addressOf: async (secret) => addressOfSecret(secret),
  signBytes: async (secret, message) => signWith(secret, message),
}
