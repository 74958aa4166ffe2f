import type { Random } from '#kernel/id.ts'
import { decrypt, encrypt, keyBytes } from '#kernel/wire/encrypted-envelope.ts'
import type { Kek, KeyEncryptionKeys } from '#kernel/wire/sealed-secret.ts'

export function createKeyEncryptionKeys(current: Kek, ...former: Kek[]): KeyEncryptionKeys {
  const byId = new Map([current, ...former].map((each) => [each.id, each]))
  if (byId.size !== former.length + 1) throw new RangeError('Two key-encryption keys have the same id')
  return { current, find: (id) => byId.get(id) }
}

/** Makes a key-encryption key from a setting of 32 bytes in base64. */
export function createEnvKek(id: string, base64: string, random: Random): Kek {
  const key = Buffer.from(base64, 'base64')
  if (key.length !== keyBytes || key.toString('base64') !== base64)
    throw new RangeError(`The key-encryption key ${id} must be ${keyBytes} bytes in base64`)
  return {
    id,
    wrap: async (dek, aad) => encrypt(key, random.bytes(12), dek, aad),
    unwrap: async (wrapped, aad) => decrypt(key, wrapped, aad),
  }
}
