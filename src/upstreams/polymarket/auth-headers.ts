import { createHmac } from 'node:crypto'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'

/**
 * The headers that authorize a request: L1 by the owner's signature, L2 by the owner's key, and those of the operator
 * for the relayer. https://docs.polymarket.com/api-reference/authentication
 */

export type SignedRequest = { method: string; path: string; body: string; timestampSeconds: number }
/** The operator's key for wallets without gas, for one account or as a builder for every user. */
export type RelayerKey =
  | { type: 'builder'; key: string; secret: string; passphrase: string }
  | { type: 'account'; key: string; address: string }

/** The query is not signed. The secret and the signature have the alphabet of URLs, with padding. */
export function hmacOf(secret: string, { method, path, body, timestampSeconds }: SignedRequest): string {
  return createHmac('sha256', Buffer.from(secret, 'base64'))
    .update(`${timestampSeconds}${method}${path}${body}`)
    .digest('base64')
    .replaceAll('+', '-')
    .replaceAll('/', '_')
}

export const ownerHeaders = (
  owner: string,
  { signature, timestampSeconds, nonce }: { signature: string; timestampSeconds: number; nonce: bigint },
): Record<string, string> => ({
  POLY_ADDRESS: owner,
  POLY_SIGNATURE: signature,
  POLY_TIMESTAMP: String(timestampSeconds),
  POLY_NONCE: String(nonce),
})

export const keyHeaders = (
  { owner, key, secret, passphrase }: VenueCredentials,
  request: SignedRequest,
): Record<string, string> => ({
  POLY_ADDRESS: owner,
  POLY_API_KEY: key,
  POLY_PASSPHRASE: passphrase,
  POLY_TIMESTAMP: String(request.timestampSeconds),
  POLY_SIGNATURE: hmacOf(secret, request),
})

export const relayerHeaders = (relayerKey: RelayerKey, request: SignedRequest): Record<string, string> =>
  relayerKey.type === 'account'
    ? { RELAYER_API_KEY: relayerKey.key, RELAYER_API_KEY_ADDRESS: relayerKey.address }
    : {
        POLY_BUILDER_API_KEY: relayerKey.key,
        POLY_BUILDER_PASSPHRASE: relayerKey.passphrase,
        POLY_BUILDER_TIMESTAMP: String(request.timestampSeconds),
        POLY_BUILDER_SIGNATURE: hmacOf(relayerKey.secret, request),
      }
