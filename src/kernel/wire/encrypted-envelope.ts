import { createCipheriv, createDecipheriv } from 'node:crypto'

/** The envelope is one blob of AES-256-GCM: version, nonce, ciphertext, tag. */

const version = 1
const ivBytes = 12
const tagBytes = 16
export const keyBytes = 32

export class BrokenEnvelope extends Error {
  override name = 'BrokenEnvelope'
}

export function encrypt(key: Uint8Array, iv: Uint8Array, plain: Uint8Array, aad: string): Uint8Array {
  if (iv.length !== ivBytes) throw new RangeError(`an iv has ${ivBytes} bytes`)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(aad))
  const body = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([Buffer.of(version), iv, body, cipher.getAuthTag()])
}

/** Decrypts an envelope; throws if the key, the blob or the bound data differs by one bit. */
export function decrypt(key: Uint8Array, blob: Uint8Array, aad: string): Uint8Array {
  const bytes = Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength)
  if (bytes[0] !== version || bytes.length < 1 + ivBytes + tagBytes)
    throw new BrokenEnvelope('The envelope has an unknown version')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, 1 + ivBytes), {
    authTagLength: tagBytes,
  })
  decipher.setAAD(Buffer.from(aad)).setAuthTag(bytes.subarray(-tagBytes))
  const first = decipher.update(bytes.subarray(1 + ivBytes, -tagBytes))
  try {
    return Buffer.concat([first, decipher.final()])
  } catch (cause) {
    throw new BrokenEnvelope('The envelope was sealed under another key or for another row', { cause })
  } finally {
    first.fill(0)
  }
}
