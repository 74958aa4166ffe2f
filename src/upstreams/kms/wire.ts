import * as T from '#kernel/contract/schema.ts'

export const Encrypted = T.Object({
  data: T.Object({ ciphertext: T.String({ pattern: '^vault:v[0-9]+:' }) }),
})
export const Decrypted = T.Object({ data: T.Object({ plaintext: T.String() }) })
export const ErrorReply = T.Object({ errors: T.Array(T.String()) })
