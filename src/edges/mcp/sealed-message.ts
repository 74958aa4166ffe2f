import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

/**
 * Encrypts the messages of an SSE session for the database. The secret of the session is only in the address that its
 * client uses: the database stores neither the secret nor a plain message.
 */

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

export const newSecret = (): string => randomBytes(32).toString('base64url')
export const isSecret = (text: string): boolean => /^[\w-]{43}$/.test(text)
export const mailboxIdOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')

const keyOf = (secret: string): Uint8Array => new Uint8Array(hkdfSync('sha256', secret, '', 'mailbox', 32))

export function seal(secret: string, text: string): Uint8Array {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, keyOf(secret), nonce)
  return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
}

export function unseal(secret: string, sealed: Uint8Array): string {
  const bytes = Buffer.from(sealed)
  const decipher = createDecipheriv(algorithm, keyOf(secret), bytes.subarray(0, nonceBytes))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
}
