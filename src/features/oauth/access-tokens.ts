import type { JWTPayload, JWTVerifyGetKey } from 'jose'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { isUuid } from '#kernel/id.ts'
import type { Jwk, OAuthKeys } from './server-keys.ts'

export type AccessClaims = {
  personId: string
  grantId: string
  clientId: string
  scopes: string[]
  expiresAt: Date
  /** When the person last gave the password; null if the token does not say. */
  signedInAt: Date | null
}

type TokenCheckDeps = VerifierDeps & { issuer: () => string; algorithms: string[] }
type VerifierDeps = {
  keys: Pick<OAuthKeys, 'publicKeys' | 'freshPublicKeys'>
  clock: Clock
  /** The base URL of the gateway, which is the issuer of its tokens and the audience for the HTTP interface. */
  baseUrl: () => string
}

/** A longer token is refused before its signature is checked; no token of this gateway comes near this size. */
const bytesMax = 4_096
const toleranceSeconds = 30
const headerFields = new Set(['alg', 'typ', 'kid'])

export const resourcesOf = (baseUrl: string): string[] => [baseUrl, `${baseUrl}/mcp`]

const refused = () =>
  new Fault(
    'invalid_token',
    'The access token is malformed, expired or not of this gateway: refresh it, or sign in again',
  )

export function createTokenVerifier(deps: VerifierDeps) {
  const check = createTokenCheck({ ...deps, issuer: deps.baseUrl, algorithms: ['ES256'] })
  return async (token: string): Promise<AccessClaims> => claimsOf(await check(token), deps.clock.now())
}

/** Checks the signature, issuer, audience, type and times of an access token. Every failure becomes the same fault. */
export function createTokenCheck({ keys, clock, baseUrl, issuer, algorithms }: TokenCheckDeps) {
  return async (token: string): Promise<JWTPayload> => {
    if (token.length > bytesMax) throw refused()
    // Most processes never verify a token of a person, so the library is loaded with the first one.
    const { decodeProtectedHeader, jwtVerify, errors, createLocalJWKSet } = await import('jose')
    const find: JWTVerifyGetKey = async (header, input) => {
      const inSet = async (set: Jwk[]) => createLocalJWKSet({ keys: set as never })(header, input)
      return inSet(await keys.publicKeys()).catch(async (error: unknown) => {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        return inSet(await keys.freshPublicKeys())
      })
    }
    try {
      const header = decodeProtectedHeader(token)
      // The header may only name the key: it must not bring its own key, an address or an extension.
      if (Object.keys(header).some((name) => !headerFields.has(name)) || typeof header.kid !== 'string')
        throw refused()
      const { payload } = await jwtVerify(token, find, {
        issuer: issuer(),
        audience: resourcesOf(baseUrl()),
        typ: 'at+jwt',
        algorithms,
        clockTolerance: toleranceSeconds,
        currentDate: clock.now(),
        requiredClaims: ['exp', 'iat', 'sub', 'client_id', 'jti'],
      })
      return payload
    } catch (error) {
      if (error instanceof Fault) throw error
      if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof SyntaxError)
        throw refused()
      throw error
    }
  }
}

function claimsOf(payload: JWTPayload, now: Date): AccessClaims {
  const { sub, exp, iat, aud, client_id: clientId, grant_id: grantId, azp, scope, auth_time } = payload
  const isConsistent =
    typeof sub === 'string' &&
    isUuid(sub) &&
    typeof exp === 'number' &&
    typeof iat === 'number' &&
    iat <= now.getTime() / 1000 + toleranceSeconds &&
    typeof aud === 'string' &&
    typeof clientId === 'string' &&
    typeof grantId === 'string' &&
    (azp === undefined || azp === clientId)
  if (!isConsistent) throw refused()
  return {
    personId: sub,
    grantId,
    clientId,
    scopes: typeof scope === 'string' ? scope.split(' ') : [],
    expiresAt: new Date(exp * 1000),
    signedInAt: typeof auth_time === 'number' ? new Date(auth_time * 1000) : null,
  }
}
