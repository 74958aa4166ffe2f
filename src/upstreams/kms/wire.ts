import * as T from '#kernel/contract/schema.ts'

/** Vault's transit engine, as its HTTP API documents it. */
export const Encrypted = T.Object({
  data: T.Object({ ciphertext: T.String({ pattern: '^vault:v[0-9]+:' }) }),
})
export const Decrypted = T.Object({ data: T.Object({ plaintext: T.String() }) })
export const ErrorReply = T.Object({ errors: T.Array(T.String()) })
