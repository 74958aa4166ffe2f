import { createHmac } from 'node:crypto'

/** The signatures follow Standard Webhooks, which libraries in many languages verify. */

export const secretPrefix = 'whsec_'
export const secretBytes = 32

export const secretText = (secret: Uint8Array): string =>
  `${secretPrefix}${Buffer.from(secret).toString('base64')}`

export type SignedMessage = { id: string; timestampSeconds: number; body: string }

/** Returns the header, with one signature per secret; during a rotation a receiver needs only one of them. */
export const signatureHeader = (
  secrets: readonly Uint8Array[],
  { id, timestampSeconds, body }: SignedMessage,
): string =>
  secrets
    .map((secret) => {
      const mac = createHmac('sha256', secret).update([id, timestampSeconds, body].join('.'))
      return `v1,${mac.digest('base64')}`
    })
    .join(' ')
