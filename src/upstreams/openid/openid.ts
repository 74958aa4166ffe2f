import type { Configuration, IDToken } from 'openid-client'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'

/** Sign-in at an external OpenID provider: authorization code with PKCE, state and nonce. */

/** What is stored about a sign-in from the departure of the browser to the provider until its return. */
export type PendingSignIn = {
  issuer: string
  redirectUri: string
  state: string
  nonce: string
  verifier: string
  /**
   * True if the provider must ask for the credentials again, and must state in `auth_time` that this happened after the
   * browser left.
   */
  isFresh: boolean
  leftAtMs: number
}
export type ExternalIdentity = {
  issuer: string
  subject: string
  email?: string
  isEmailVerified: boolean
  /**
   * When the provider last asked for the credentials. If the person already had a session there, this time is before
   * the sign-in. Null if the provider does not state it.
   */
  signedInAt: Date | null
}
export type SignInResult =
  | { ok: true; identity: ExternalIdentity }
  /** `declined` means that the provider sent an error; `rejected`, that its answer is not valid. */
  | { ok: false; why: 'declined' | 'rejected' }

export type OpenIdProvider = {
  issuer: string
  /** Begins a sign-in with the URL at the provider. Throws `unavailable` if the provider does not answer. */
  begin(request: {
    redirectUri: string
    state: string
    isFresh: boolean
  }): Promise<{ url: string; pending: PendingSignIn }>
  finish(pending: PendingSignIn, query: string): Promise<SignInResult>
}

type Options = {
  issuer: string
  clientId: string
  clientSecret: string | undefined
  net: Net
  clock: Clock
  log: Log
}

const scope = 'openid email profile'
const metadataMs = 10 * 60_000
const timeoutMs = 8_000
const maxBytes = 256 * 1024
/** The provider's clock may be this far behind. */
const clockToleranceMs = 5_000

/** Finds a failure of the connection inside the errors that the library wraps around it. */
function outageIn(error: unknown): Fault | undefined {
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++)
    if (each instanceof Fault) return each
  return undefined
}

export function createIdentityProvider({
  issuer,
  clientId,
  clientSecret,
  net,
  clock,
  log,
}: Options): OpenIdProvider {
  const fetchByNet = async (url: string, init: RequestInit): Promise<Response> => {
    const reply = await net.fetch({
      url,
      method: init.method ?? 'GET',
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(init.body !== undefined && init.body !== null && { body: String(init.body) }),
      timeoutMs,
      maxBytes,
    })
    if (reply.status >= 500 || reply.status === 429)
      throw new Fault('unavailable', `The identity provider answered with status ${reply.status}`)
    const isSigned = /^[\w-]+\.[\w-]+\.[\w-]+$/.test(reply.body)
    return new Response(reply.body === '' ? null : reply.body, {
      status: reply.status,
      headers: { 'content-type': isSigned ? 'application/jwt' : 'application/json' },
    })
  }

  const discover = async (): Promise<Configuration> => {
    const client = await import('openid-client')
    const authenticate: ReturnType<typeof client.None> = (server, ...rest) => {
      if (clientSecret === undefined) return client.None()(server, ...rest)
      const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
      const isBasic = methods.includes('client_secret_basic')
      const method = isBasic ? client.ClientSecretBasic(clientSecret) : client.ClientSecretPost(clientSecret)
      return method(server, ...rest)
    }
    const isInsecure = issuer.startsWith('http:')
    const configuration = await client.discovery(new URL(issuer), clientId, undefined, authenticate, {
      // The signature of the id token is checked too; a secure connection to the provider is not enough.
      execute: [client.enableNonRepudiationChecks, ...(isInsecure ? [client.allowInsecureRequests] : [])],
      [client.customFetch]: fetchByNet as never,
    })
    configuration[client.customFetch] = fetchByNet as never
    return configuration
  }
  const configuration = createCachedValue(discover, {
    ttlMs: metadataMs,
    nowMs: () => clock.now().getTime(),
  })

  const connect = async (): Promise<Configuration> =>
    configuration.get().catch((error: unknown) => {
      if (!outageIn(error)) log.error({ error, issuer }, 'the identity provider cannot be used')
      throw new Fault('unavailable', 'The identity provider does not answer', { cause: error })
    })

  return {
    issuer,
    async begin({ redirectUri, state, isFresh }) {
      const client = await import('openid-client')
      const known = await connect()
      const nonce = client.randomNonce()
      const verifier = client.randomPKCECodeVerifier()
      const url = client.buildAuthorizationUrl(known, {
        redirect_uri: redirectUri,
        scope,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(isFresh && { prompt: 'login', max_age: '0' }),
      })
      const leftAtMs = clock.now().getTime()
      return { url: url.href, pending: { issuer, redirectUri, state, nonce, verifier, isFresh, leftAtMs } }
    },

    async finish(pending, query) {
      const client = await import('openid-client')
      const known = await connect()
      try {
        // This call checks the state and `iss` of the redirect, and issuer, audience, nonce, times and signature of
        // the id token.
        const tokens = await client.authorizationCodeGrant(
          known,
          new URL(`${pending.redirectUri}?${query}`),
          {
            expectedState: pending.state,
            expectedNonce: pending.nonce,
            pkceCodeVerifier: pending.verifier,
            idTokenExpected: true,
          },
        )
        const claims = tokens.claims()
        if (!claims) return { ok: false, why: 'rejected' }
        if (pending.isFresh && !isSignInSince(claims, pending)) {
          log.warn({ issuer, auth_time: claims.auth_time }, 'the identity provider did not ask for a sign-in')
          return { ok: false, why: 'rejected' }
        }
        // Many providers send the email address only at the userinfo endpoint.
        const source: Partial<IDToken> =
          claims.email === undefined && known.serverMetadata().userinfo_endpoint !== undefined
            ? await client.fetchUserInfo(known, tokens.access_token, claims.sub)
            : claims
        return {
          ok: true,
          identity: { ...identityOf(claims, source), signedInAt: signedInAt(claims, clock.now()) },
        }
      } catch (error) {
        const outage = outageIn(error)
        if (outage) throw new Fault('unavailable', 'The identity provider does not answer', { cause: error })
        const isDeclined = error instanceof client.AuthorizationResponseError
        log.warn({ error, issuer }, 'a sign-in at the identity provider failed')
        return { ok: false, why: isDeclined ? 'declined' : 'rejected' }
      }
    },
  }
}

/** Whether the provider asked for the credentials after the browser left; false if it does not say when. */
const isSignInSince = ({ auth_time: seconds }: IDToken, { leftAtMs }: PendingSignIn): boolean =>
  typeof seconds === 'number' && seconds * 1_000 + clockToleranceMs >= leftAtMs

/** A provider's clock that is ahead of ours must not date a sign-in later than now. */
const signedInAt = ({ auth_time: seconds }: IDToken, now: Date): Date | null =>
  typeof seconds === 'number' ? new Date(Math.min(seconds * 1_000, now.getTime())) : null

const identityOf = (
  { iss: issuer, sub: subject }: IDToken,
  { email, email_verified }: Record<string, unknown>,
): Omit<ExternalIdentity, 'signedInAt'> => ({
  issuer,
  subject,
  ...(typeof email === 'string' && { email }),
  // Some providers send `email_verified` as text.
  isEmailVerified: email_verified === true || email_verified === 'true',
})
