import type { IncomingMessage } from 'node:http'
import { type Client, errors, interactionPolicy, Provider, type Session } from 'oidc-provider'
import { errorPage, pageHeaders } from '#edges/oauth/pages.ts'
import { actingScopes, oauthPaths, oauthScopes } from '#edges/oauth/paths-and-scopes.ts'
import { isSignInOf } from '#edges/oauth/sign-in/browser-session.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { ServerKeys } from '#features/oauth/server-keys.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { isOwnClient } from '#kernel/contract/caller.ts'
import type { Log } from '#kernel/log.ts'
import { checkClient, type Metadata } from './client-metadata.ts'
import { detailOf, sentenceOf } from './error-sentences.ts'
import { createGrantLoader } from './grant-loader.ts'
import { ownClients } from './page-clients.ts'
import { recordAdapter } from './record-adapter.ts'
import { completeRevocation, noteRefusal } from './revocation.ts'
import { unknownSignInSeconds } from './sign-in-request.ts'

export type ProviderDeps = {
  oauth: OAuth
  baseUrl: () => string
  /** Fetches the metadata documents that clients name. */
  fetch: (url: string, init?: object) => Promise<unknown>
  clock: Clock
  log: Log
  /** Whether the process itself made the request, in order to redeem a code of its pages. */
  isOwnRequest: (request: IncomingMessage) => boolean
}

const accessTokenSeconds = 600
const daySeconds = 86_400
const seconds = {
  AccessToken: accessTokenSeconds,
  AuthorizationCode: 60,
  Grant: 180 * daySeconds,
  IdToken: 3_600,
  Interaction: 1_800,
  RefreshToken: 30 * daySeconds,
  Session: 14 * daySeconds,
}
const scope = [...oauthScopes, ...actingScopes].join(' ')

const stateLengthMax = 2_048
/** The most characters of all fields of a sign-in request, which is stored until the sign-in has ended. */
const requestLengthMax = 8_192
function checkRequestSize({ oidc: { params } }: { oidc: { params: object } }, state?: string): void {
  const isTooLong = (state?.length ?? 0) > stateLengthMax || JSON.stringify(params).length > requestLengthMax
  if (isTooLong)
    // The browser is not sent back to the app, because that address would contain the state.
    throw Object.assign(
      new errors.InvalidRequest(
        `state is longer than ${stateLengthMax} characters, or the request than ${requestLengthMax}`,
      ),
      {
        allow_redirect: false,
      },
    )
}

/**
 * Clients that refresh in parallel send the same refresh token twice. Within this time the second use is only refused,
 * and the grant ends when the person next connects the app. A later second use ends the grant at once, because somebody
 * else may have the token.
 */
const refreshGraceMs = 10_000
async function refuseParallelRefresh(
  { kind, consumed, grantId, clientId }: TokenSource,
  { oauth, clock, log }: Pick<ProviderDeps, 'oauth' | 'clock' | 'log'>,
): Promise<void> {
  if (kind !== 'RefreshToken' || consumed === undefined || grantId === undefined) return
  if (clock.now() > later(new Date(consumed * 1_000), refreshGraceMs)) return
  await oauth.grants.contest(grantId)
  log.warn({ clientId }, 'a refresh token was used twice within the grace')
  throw new errors.InvalidGrant('the refresh token was used a moment ago')
}

/**
 * The context in which an access token is issued: the request, and the code or refresh token that the client redeems.
 */
type TokenContext = {
  req: IncomingMessage
  oidc: { entities: Partial<Record<'AuthorizationCode' | 'RefreshToken', TokenSource>> }
}
type TokenSource = {
  kind?: string
  authTime?: number
  sessionUid?: string
  clientId: string
  grantId?: string
  /** When the token was used, in seconds. */
  consumed?: number
}
function featuresAt(base: string): Record<string, object> {
  const audiences = new Map([
    [base, base],
    // Clients that normalise URLs append a slash to the audience.
    [`${base}/`, base],
    [`${base}/mcp`, `${base}/mcp`],
    [`${base}/mcp/`, `${base}/mcp`],
  ])
  return {
    devInteractions: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    // The provider reads the addresses that a client registers for this; `sign-out-edge.ts` has the pages.
    rpInitiatedLogout: { enabled: true },
    // The provider does not serve userinfo: its access tokens are issued for the gateway's interface, which serves that
    // endpoint.
    userinfo: { enabled: false },
    registration: { enabled: true, initialAccessToken: false, issueRegistrationAccessToken: false },
    revocation: { enabled: true, allowedPolicy: ownTokensOnly },
    introspection: { enabled: true, allowedPolicy: ownTokensOnly },
    clientIdMetadataDocument: {
      enabled: true,
      ack: 'draft-02',
      cacheDuration: { min: 60, max: 3_600 },
      allowFetch: async () => true,
      allowClient: async () => true,
    },
    // A client's document may name authentication methods that are not served, in addition to `none`.
    rpMetadataChoices: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: async (_context: unknown, _client: Client, oneOf?: string | string[]) => oneOf ?? base,
      useGrantedResource: async () => true,
      async getResourceServerInfo(_context: unknown, indicator: string) {
        // The address of MCP may choose tools by its query.
        const audience = audiences.get(indicator) ?? audiences.get(indicator.replace(/(\/mcp\/?)\?.*$/, '$1'))
        if (audience === undefined) throw new errors.InvalidTarget()
        return {
          audience,
          scope,
          accessTokenFormat: 'jwt',
          accessTokenTTL: accessTokenSeconds,
          jwt: { sign: { alg: 'ES256' } },
        }
      },
    },
  }
}

type CheckContext = {
  oidc: {
    params: { max_age?: number }
    session: Session & { past(seconds: number): boolean }
    client: Client
    result?: { login?: object }
  }
}

/** `max_age` asks for a sign-in for this app, so one for another app does not count. */
function signInPolicy(): object {
  const policy = interactionPolicy.base()
  const { checks } = policy.get('login')
  checks.remove('max_age')
  checks.add(
    new interactionPolicy.Check(
      'max_age',
      'End-User authentication could not be obtained',
      'login_required',
      ({ oidc: { params, session, client, result } }: CheckContext) =>
        params.max_age !== undefined &&
        !result?.login &&
        (session.accountId === undefined ||
          session.past(params.max_age) ||
          !isSignInOf(session, client.clientId)),
    ),
  )
  return policy
}

/** Creates the authorization server for one set of keys. */
export function createProvider(
  { oauth, baseUrl, fetch, clock, log, isOwnRequest }: ProviderDeps,
  keys: ServerKeys,
): Provider {
  const base = baseUrl()
  const provider = new Provider(base, {
    adapter: (model: string) => recordAdapter(model, oauth),
    jwks: { keys: keys.signing },
    cookies: {
      keys: keys.cookies,
      names: { session: 'portico_session', interaction: 'portico_interaction', resume: 'portico_resume' },
      long: { httpOnly: true, sameSite: 'lax', signed: true },
      short: { httpOnly: true, sameSite: 'lax', signed: true },
    },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    clientDefaults: {
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      id_token_signed_response_alg: 'ES256',
    },
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    responseTypes: ['code'],
    clients: ownClients(base),
    loadExistingGrant: createGrantLoader(oauth),
    pkce: { required: () => true },
    scopes: [...oauthScopes],
    claims: { openid: ['sub', 'auth_time', 'amr'], email: ['email', 'email_verified'], profile: ['name'] },
    async findAccount(_context: unknown, id: string, source?: TokenSource) {
      if (source) await refuseParallelRefresh(source, { oauth, clock, log })
      const person = await oauth.people.find(id)
      if (!person) return undefined
      const { email, name } = person
      const claims = async () => ({
        sub: id,
        email,
        email_verified: true,
        ...(name !== undefined && { name }),
      })
      return { accountId: id, claims }
    },
    interactions: {
      url: (_context: unknown, { uid }: { uid: string }) => `${base}${oauthPaths.interaction}/${uid}`,
      policy: signInPolicy(),
    },
    features: featuresAt(base),
    formats: {
      customizers: {
        // The verification of a token needs the grant, and for a page of the gateway the time of the sign-in.
        async jwt(
          { req, oidc: { entities } }: TokenContext,
          token: { grantId?: string },
          jwt: { payload: Record<string, unknown> },
        ) {
          jwt.payload.grant_id = token.grantId
          const { AuthorizationCode, RefreshToken } = entities
          const clientId = (AuthorizationCode ?? RefreshToken)?.clientId
          // An app's token contains no sign-in time: an act that needs a recent one is confirmed on the pages.
          if (clientId === undefined || !isOwnClient(clientId)) return jwt
          // Only this process redeems codes of its pages, so a script that has found a code can use it nowhere.
          if (!isOwnRequest(req))
            throw new errors.InvalidGrant('the pages of this gateway redeem their codes')
          const { authTime = unknownSignInSeconds, sessionUid } = AuthorizationCode ?? {}
          if (sessionUid === undefined || authTime <= unknownSignInSeconds) return jwt
          const session = await provider.Session.findByUid(sessionUid)
          if (session?.loginTs === authTime && isSignInOf(session, clientId)) jwt.payload.auth_time = authTime
          return jwt
        },
      },
    },
    extraClientMetadata: {
      // The name of the property does not matter, because `validator` is called once for each client.
      properties: ['portico_redirects'],
      validator: (_context: unknown, _key: string, _value: unknown, metadata: Metadata) =>
        checkClient(metadata),
    },
    extraParams: { state: checkRequestSize },
    allowOmittingSingleRegisteredRedirectUri: false,
    rotateRefreshToken: true,
    issueRefreshToken: async (
      _context: unknown,
      client: { grantTypeAllowed(type: string): boolean },
      source: { scopes: Set<string> },
    ) => client.grantTypeAllowed('refresh_token') && source.scopes.has('offline_access'),
    expiresWithSession: async () => false,
    fetch,
    fetchResponseBodyLimits: { jwks_uri: 32_768, sector_identifier_uri: 32_768 },
    ttl: Object.fromEntries(Object.entries(seconds).map(([model, life]) => [model, () => life])),
    clientBasedCORS: (_context: unknown, origin: string, client: { redirectUris?: string[] }) =>
      client.redirectUris?.some((uri) => URL.parse(uri)?.origin === origin) ?? false,
    renderError(
      context: { type: string; body: unknown; set(name: string, value: string): void },
      out: { error: string; error_description?: string },
    ) {
      for (const [name, value] of Object.entries(pageHeaders())) context.set(name, value)
      context.type = 'html'
      context.body = errorPage(sentenceOf(out), detailOf(out))
    },
    routes: {
      authorization: oauthPaths.authorize,
      token: oauthPaths.token,
      registration: oauthPaths.register,
      jwks: oauthPaths.jwks,
      revocation: oauthPaths.revoke,
      introspection: oauthPaths.introspect,
    },
  })
  // The gateway itself sets the headers that name host and protocol before each call.
  provider.proxy = true
  provider.silent = true
  provider.use(completeRevocation(oauth))
  provider.on('revocation.error', noteRefusal as never)
  const report = (...given: unknown[]) => log.error({ error: given.at(-1) }, 'authorization server failed')
  provider.on('server_error', report as never)
  provider.on('error', report as never)
  return provider
}

/** A client may ask about its own tokens only. */
async function ownTokensOnly(
  _context: unknown,
  client: Client,
  token: { clientId: string },
): Promise<boolean> {
  return token.clientId === client.clientId
}
