import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { parseJson } from '#kernel/wire/json.ts'

/** This module checks what an authenticator signed. It loads the library with the first passkey. */

/** The name and the origin that passkeys of this gateway are bound to. */
export type RelyingParty = { id: string; origin: string }

/** Returns the relying party of the base URL; undefined for an IP address, and without https or `localhost`. */
export function relyingPartyOf(baseUrl: string): RelyingParty | undefined {
  const { protocol, hostname, origin } = new URL(baseUrl)
  if (isIP(hostname) !== 0 || hostname.startsWith('[')) return undefined
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost')
  return protocol === 'https:' || isLocal ? { id: hostname, origin } : undefined
}

/** The COSE algorithms that a passkey may have: Ed25519, ES256 and RS256. */
export const algorithms = [-8, -7, -257]

export type VerifiedCredential = {
  credentialId: Buffer
  publicKey: Buffer
  signCount: number
  isSynced: boolean
}
type Expected = { challengeHash: string; party: RelyingParty }

export const hashOfChallenge = (challenge: string): string =>
  createHash('sha256').update(challenge).digest('base64url')
const isChallengeOf =
  (hash: string) =>
  (challenge: string): boolean =>
    timingSafeEqual(Buffer.from(hashOfChallenge(challenge)), Buffer.from(hash))

const credentialLengthMax = 8_192
const isText = (value: unknown): value is string => typeof value === 'string'

type CredentialJson = { id: string; response: Record<string, unknown> }
/** Parses the credential that the page sent; returns undefined if the text is no credential. */
export function readCredential(text: string): CredentialJson | undefined {
  if (text.length > credentialLengthMax) return undefined
  const value = parseJson(text)
  const { id, response } = (value ?? {}) as Record<string, unknown>
  if (!isText(id) || !/^[\w-]{1,1400}$/.test(id)) return undefined
  if (typeof response !== 'object' || response === null) return undefined
  return { ...(value as CredentialJson), id, response: response as Record<string, unknown> }
}

/** Pages of this gateway are never framed, but the library accepts a framed use if the browser names no frame. */
function isFramed({ response }: CredentialJson): boolean {
  const client: unknown = JSON.parse(Buffer.from(String(response.clientDataJSON), 'base64url').toString())
  return (client as { crossOrigin?: unknown }).crossOrigin === true
}

/** The library checks the form of its input, and throws a plain error for anything invalid that a browser sends. */
async function unlessInvalid<T>(run: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await run()
  } catch {
    return undefined
  }
}

/** Verifies a new passkey; undefined unless made for this challenge, origin and name, with the user verified. */
export function verifyNewPasskey(
  credential: CredentialJson,
  { challengeHash, party }: Expected,
): Promise<VerifiedCredential | undefined> {
  return unlessInvalid(async () => {
    const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
    if (isFramed(credential) || !(await isWithoutCertificates(credential))) return undefined
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: credential as never,
      expectedChallenge: isChallengeOf(challengeHash),
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: algorithms,
    })
    if (!verified) return undefined
    const { credential: made, credentialDeviceType } = registrationInfo
    return {
      credentialId: Buffer.from(made.id, 'base64url'),
      publicKey: Buffer.from(made.publicKey),
      signCount: made.counter,
      isSynced: credentialDeviceType === 'multiDevice',
    }
  })
}

/**
 * The gateway asks for no statement about the authenticator. A statement with certificates is refused before the
 * library can follow the addresses in them; a browser may still include the signature of the new key itself.
 */
async function isWithoutCertificates({ response }: CredentialJson): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  const statement = decodeAttestationObject(
    new Uint8Array(Buffer.from(String(response.attestationObject), 'base64url')),
  )
  const format = statement.get('fmt')
  return format === 'none' || (format === 'packed' && statement.get('attStmt').get('x5c') === undefined)
}

type StoredKey = { credentialId: Buffer; publicKey: Buffer }

/** Returns the signature's counter; undefined unless this key signed for this challenge, origin and name. */
export function verifySignature(
  credential: CredentialJson,
  { credentialId, publicKey }: StoredKey,
  { challengeHash, party }: Expected,
): Promise<number | undefined> {
  return unlessInvalid(async () => {
    const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
    if (isFramed(credential)) return undefined
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: credential as never,
      expectedChallenge: isChallengeOf(challengeHash),
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
      // The statement that stores the counter also compares it, so that only one of two concurrent uses counts.
      credential: {
        id: credentialId.toString('base64url'),
        publicKey: new Uint8Array(publicKey),
        counter: 0,
      },
    })
    return verified ? authenticationInfo.newCounter : undefined
  })
}
