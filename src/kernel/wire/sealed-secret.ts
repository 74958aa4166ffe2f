import type { Random } from '#kernel/id.ts'
import { decrypt, encrypt, keyBytes } from './encrypted-envelope.ts'

/** A key that encrypts data keys. If a remote service holds the key, each call is a network call. */
export type Kek = {
  readonly id: string
  wrap(dek: Uint8Array, aad: string): Promise<Uint8Array>
  unwrap(wrapped: Uint8Array, aad: string): Promise<Uint8Array>
}
/** New data keys are wrapped under `current`; the others only unwrap existing ones. */
export type KeyEncryptionKeys = { current: Kek; find(id: string): Kek | undefined }

/** A secret as a row stores it: encrypted under its own data key, which a key-encryption key wraps. */
export type SealedSecret = { ciphertext: Uint8Array; wrapped_dek: Uint8Array; kek_id: string }

export class UnknownKek extends Error {
  override name = 'UnknownKek'
}

export type Sealer = {
  /** `aad` names the row, so that the secret cannot be opened from another row. Wrapping may be a network call. */
  seal(secret: Uint8Array, aad: string): Promise<SealedSecret>
  /**
   * Opens a sealed secret; throws if its key-encryption key is missing or is not the one that wrapped the data key.
   */
  unseal(sealed: SealedSecret, aad: string): Promise<Buffer>
}

export function createSealer({
  keyEncryptionKeys,
  random,
}: {
  keyEncryptionKeys: KeyEncryptionKeys
  random: Random
}): Sealer {
  return {
    async seal(secret, aad) {
      const dek = random.bytes(keyBytes)
      const kek = keyEncryptionKeys.current
      try {
        return {
          ciphertext: encrypt(dek, random.bytes(12), secret, aad),
          wrapped_dek: await kek.wrap(dek, `${kek.id}|${aad}`),
          kek_id: kek.id,
        }
      } finally {
        dek.fill(0)
      }
    },
    async unseal({ ciphertext, wrapped_dek, kek_id }, aad) {
      const kek = keyEncryptionKeys.find(kek_id)
      if (!kek) throw new UnknownKek(`The key-encryption key ${kek_id} is not configured`)
      const dek = await kek.unwrap(wrapped_dek, `${kek_id}|${aad}`)
      try {
        return Buffer.from(decrypt(dek, ciphertext, aad))
      } finally {
        dek.fill(0)
      }
    },
  }
}
