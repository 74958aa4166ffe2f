import { connectionError, errorOf } from './errors.ts'

/** Signs a person in by authorization code with PKCE at the authorization server of a gateway. */

type Fetch = typeof globalThis.fetch

export type OAuthTokens = {
  accessToken: string
  /** The refresh token; absent without the scope `offline_access`, when the sign-in ends with the access token. */
  refreshToken?: string | undefined
  endsAtMs: number
  clientId: string
  tokenEndpoint: string
  revocationEndpoint?: string | undefined
}

export type SignInOptions = {
  baseUrl: string
  /** Where the browser returns: a page of your app, or a loopback address. */
  redirectUri: string
  /** The name of the app that the person sees at the sign-in. */
  clientName?: string | undefined
  /** The id of a client that is registered already; without an id a new client is registered. */
  clientId?: string | undefined
  /** The scopes to ask for. Default: `openid email offline_access`. */
  scope?: string | undefined
  fetch?: Fetch | undefined
}

/** The facts of a sign-in under way, as JSON: store them until the browser returns, as in `sessionStorage`. */
export type PendingSignIn = {
  state: string
  verifier: string
  issuer: string
  resource: string
  clientId: string
  redirectUri: string
  tokenEndpoint: string
  revocationEndpoint?: string | undefined
}

const requestTimeoutMs = 15_000
/** The lifetime of an access token if the answer names none. */
const lifeSecondsDefault = 300

type Fields = Readonly<Record<string, unknown>>
const textOf = (fields: Fields, name: string): string => {
  const value = fields[name]
  if (typeof value === 'string' && value !== '') return value
  throw refusal('unexpected_reply', `The authorization server gave no ${name}`)
}

const refusal = (code: string, detail: string) => errorOf(401, { code, detail, retryable: false })

async function request(fetch: Fetch, url: string, init: RequestInit = {}): Promise<Fields> {
  const read = async () => {
    const signal = AbortSignal.timeout(requestTimeoutMs)
    // Redirects are refused, because a redirect would send the code or the token to another server.
    const reply = await fetch(url, { ...init, redirect: 'error', signal })
    return { status: reply.status, isOk: reply.ok, text: await reply.text() }
  }
  const { status, isOk, text } = await read().catch((error: unknown) => {
    throw connectionError('connection_failed', `No answer from ${new URL(url).origin}`, error)
  })
  let fields: Fields = {}
  try {
    fields = JSON.parse(text) ?? {}
  } catch {
    if (isOk && text !== '') throw refusal('unexpected_reply', `${url} answered without JSON`)
  }
  if (isOk) return fields
  const { error, error_description: detail } = fields
  if (error === undefined) throw errorOf(status, fields)
  throw errorOf(error === 'invalid_grant' ? 401 : status, { code: error, detail, retryable: status >= 500 })
}

export const postForm = (fetch: Fetch, url: string, fields: Record<string, string>): Promise<Fields> =>
  request(fetch, url, { method: 'POST', body: new URLSearchParams(fields) })

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
const randomText = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)))

async function challengeOf(verifier: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))))
}

/** Reads the metadata of RFC 9728, then of RFC 8414. Each document must name the address of its request. */
async function discover(fetch: Fetch, baseUrl: string): Promise<{ issuer: string; server: Fields }> {
  const resource = await request(fetch, `${baseUrl}/.well-known/oauth-protected-resource`)
  if (resource.resource !== baseUrl)
    throw refusal(
      'wrong_address',
      `The gateway at ${baseUrl} calls itself ${resource.resource}; use that address`,
    )
  const { authorization_servers: servers } = resource
  const issuer: unknown = Array.isArray(servers) ? servers[0] : undefined
  if (typeof issuer !== 'string')
    throw refusal('unexpected_reply', `${baseUrl} names no authorization server`)
  const { origin, pathname } = new URL(issuer)
  const path = pathname === '/' ? '' : pathname
  const server = await request(fetch, `${origin}/.well-known/oauth-authorization-server${path}`)
  if (server.issuer !== issuer) throw refusal('wrong_issuer', `${issuer} calls itself ${server.issuer}`)
  return { issuer, server }
}

/** Returns an endpoint from the server's metadata. If the gateway uses https, an endpoint without https is refused. */
function endpointOf(server: Fields, name: string, baseUrl: string): string {
  const url = textOf(server, name)
  if (baseUrl.startsWith('https:') && !url.startsWith('https:'))
    throw refusal('unexpected_reply', `${name} is no https address`)
  return url
}

/** Returns where to send the browser, and what `completeSignIn` needs when it returns. */
export async function beginSignIn({
  redirectUri,
  clientName = 'Portico SDK',
  scope = 'openid email offline_access',
  fetch = globalThis.fetch.bind(globalThis),
  ...given
}: SignInOptions): Promise<{ url: string; pending: PendingSignIn }> {
  const baseUrl = given.baseUrl.replace(/\/+$/, '')
  const { issuer, server } = await discover(fetch, baseUrl)
  const at = (name: string) => endpointOf(server, name, baseUrl)
  const register = () =>
    request(fetch, at('registration_endpoint'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client_name: clientName,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      }),
    })
  const clientId = given.clientId ?? textOf(await register(), 'client_id')
  const pending: PendingSignIn = {
    state: randomText(),
    verifier: randomText(),
    issuer,
    resource: baseUrl,
    clientId,
    redirectUri,
    tokenEndpoint: at('token_endpoint'),
    ...(server.revocation_endpoint !== undefined && { revocationEndpoint: at('revocation_endpoint') }),
  }
  const url = new URL(at('authorization_endpoint'))
  const query = {
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope,
    // Unless the person consents in this sign-in, the server gives no refresh token.
    prompt: 'consent',
    resource: baseUrl,
    state: pending.state,
    code_challenge: await challengeOf(pending.verifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return { url: url.href, pending }
}

/** Exchanges the authorization code for tokens. The code is in the URL to which the browser returned. */
export async function completeSignIn(
  pending: PendingSignIn,
  returned: string | URL,
  { fetch = globalThis.fetch.bind(globalThis) }: { fetch?: Fetch } = {},
): Promise<OAuthTokens> {
  const { searchParams: query } = new URL(returned)
  if (query.get('state') !== pending.state)
    throw refusal('wrong_state', 'The browser returned from a sign-in that was not started here')
  // RFC 9207: if the redirect is from another authorization server, its code must not be sent to this one.
  const iss = query.get('iss')
  if (iss !== null && iss !== pending.issuer)
    throw refusal('wrong_issuer', `The answer is from ${iss}, and not from ${pending.issuer}`)
  const error = query.get('error')
  if (error !== null) throw refusal(error, query.get('error_description') ?? 'The sign-in was refused')
  const { clientId, redirectUri, verifier, resource, tokenEndpoint, revocationEndpoint } = pending
  const answer = await postForm(fetch, tokenEndpoint, {
    grant_type: 'authorization_code',
    client_id: clientId,
    code: query.get('code') ?? '',
    redirect_uri: redirectUri,
    code_verifier: verifier,
    resource,
  })
  return tokensOf(answer, { clientId, tokenEndpoint, revocationEndpoint })
}

type ClientFields = Pick<OAuthTokens, 'clientId' | 'tokenEndpoint' | 'revocationEndpoint'> & {
  refreshToken?: string | undefined
}

/** Returns the tokens of a token answer; a refresh token that the answer does not replace stays valid. */
export function tokensOf(answer: Fields, { refreshToken, ...client }: ClientFields): OAuthTokens {
  const { expires_in: life, refresh_token: next } = answer
  return {
    ...client,
    accessToken: textOf(answer, 'access_token'),
    refreshToken: typeof next === 'string' ? next : refreshToken,
    endsAtMs: Date.now() + (typeof life === 'number' ? life : lifeSecondsDefault) * 1_000,
  }
}
