import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Grant, type Interaction, Provider } from 'oidc-provider'

/**
 * An OpenID provider on loopback, in memory: people of another company's service. No start of the world starts it.
 */

export type Account = { email?: string; email_verified?: boolean }
export type IdentityClient = { client_id: string; client_secret?: string; redirect_uris: string[] }
/** What a broken, hostile or talkative provider does with each sign-in. */
export type Lie =
  | 'ignores prompt and max_age'
  | 'old auth_time'
  | 'auth_time that nobody asked for'
  | 'another subject'
  | 'used code'
  | 'wrong nonce'
  | 'wrong issuer'
export type IdentityProvider = {
  issuer: string
  lie?: Lie | undefined
  /** By subject. Each may sign in without a password. */
  accounts: Map<string, Account>
  /** Clients registered after the start. */
  addClient(client: IdentityClient): void
} & AsyncDisposable

type Options = {
  port?: number
  clients?: readonly IdentityClient[]
  /** Whether strangers may register clients, as a service behind `AUTH_MODE=proxy` allows. */
  registration?: boolean
  /** The resources for which it issues JWTs; read at each request. */
  resources?: readonly string[]
}

const routes = {
  authorization: '/authorize',
  token: '/token',
  jwks: '/keys',
  userinfo: '/me',
  registration: '/clients',
}
const tokenSeconds = 600
const bodyBytesMax = 4_096

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`)

function loginPage(uid: string, accounts: ReadonlyMap<string, Account>): string {
  const buttons = [...accounts].map(
    ([subject, { email = '' }]) =>
      `<p><button name="subject" value="${escapeHtml(subject)}">${escapeHtml(email || subject)}</button></p>`,
  )
  return `<!doctype html><html lang="en"><title>Sign in at the local identity provider</title><h1>Choose an account</h1><form method="post" action="/login/${escapeHtml(uid)}">${buttons.join('')}<p><button name="cancel" value="yes">Cancel</button></p></form></html>`
}

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) throw new Error('The form is too large.')
    chunks.push(chunk)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString())
}

/** An operator defines the scopes of a resource beside those of OpenID. */
const resourceScope = 'openid profile email offline_access trade earn chat manage propose'

function createProvider(
  issuer: string,
  { clients, registration, resources }: Options,
  accounts: Map<string, Account>,
) {
  const resourceServer = (audience: string) => ({
    audience,
    scope: resourceScope,
    accessTokenFormat: 'jwt',
    accessTokenTTL: tokenSeconds,
    jwt: { sign: { alg: 'RS256' } },
  })
  const provider: Provider = new Provider(issuer, {
    clients: (clients ?? []).map((client) => ({
      ...client,
      token_endpoint_auth_method: client.client_secret === undefined ? 'none' : 'client_secret_basic',
    })),
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    ...(registration && { clientDefaults: { token_endpoint_auth_method: 'none' } }),
    pkce: { required: () => true },
    responseTypes: ['code'],
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    findAccount: (_context: unknown, subject: string) =>
      accounts.has(subject)
        ? { accountId: subject, claims: async () => ({ sub: subject, ...accounts.get(subject) }) }
        : undefined,
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/login/${uid}` },
    // Each person who signs in agrees to everything.
    async loadExistingGrant({ oidc }: GrantContext): Promise<Grant> {
      const known = oidc.session.grantIdFor(oidc.client.clientId)
      const grant =
        (known === undefined ? undefined : await provider.Grant.find(known)) ??
        new provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId })
      grant.addOIDCScope('openid profile email offline_access')
      grant.addOIDCClaims(['email', 'email_verified'])
      for (const resource of resources ?? []) grant.addResourceScope(resource, resourceScope)
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      ...(registration && { registration: { enabled: true, initialAccessToken: false } }),
      ...(resources && {
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => true,
          getResourceServerInfo: (_context: unknown, resource: string) => resourceServer(resource),
        },
      }),
    },
    extraTokenClaims: (_context: unknown, token: { accountId: string }) => accounts.get(token.accountId),
    cookies: { keys: ['local identity provider'] },
    issueRefreshToken: async (_context: unknown, client: { grantTypeAllowed(type: string): boolean }) =>
      client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    routes,
  })
  provider.silent = true
  return provider
}
type GrantContext = {
  oidc: {
    client: { clientId: string }
    session: { accountId: string; grantIdFor(clientId: string): string | undefined }
  }
}

/** Longer ago than any clock differs, and recent enough for a careless client. */
const oldSignInSeconds = 60

/** Changes requests and redirects as the lie of the moment says. */
function createLiar(issuer: string, lieOf: () => Lie | undefined) {
  let usedCode: string | undefined
  const redirect = (location: string): string => {
    const url = new URL(location, issuer)
    const code = url.searchParams.get('code')
    if (url.origin === issuer || code === null) return location
    if (lieOf() === 'used code' && usedCode !== undefined) url.searchParams.set('code', usedCode)
    if (lieOf() === 'wrong issuer') url.searchParams.set('iss', 'https://another.example')
    usedCode ??= code
    return url.href
  }
  return {
    request(request: IncomingMessage): void {
      const url = new URL(request.url ?? '', issuer)
      if (url.pathname !== routes.authorization) return
      if (lieOf() === 'wrong nonce') url.searchParams.set('nonce', 'another')
      if (lieOf() === 'ignores prompt and max_age')
        for (const name of ['prompt', 'max_age']) url.searchParams.delete(name)
      if (lieOf() === 'auth_time that nobody asked for' && !url.searchParams.has('max_age'))
        url.searchParams.set('max_age', '86400')
      request.url = `${url.pathname}${url.search}`
    },
    response(response: ServerResponse): void {
      const setHeader = response.setHeader.bind(response)
      response.setHeader = (name, value) =>
        setHeader(name, /^location$/i.test(name) ? redirect(String(value)) : value)
    },
    login(accountId: string, accounts: ReadonlyMap<string, Account>): { accountId: string; ts?: number } {
      if (lieOf() === 'old auth_time')
        return { accountId, ts: Math.floor(Date.now() / 1_000) - oldSignInSeconds }
      const other = [...accounts.keys()].find((each) => each !== accountId)
      return lieOf() === 'another subject' && other !== undefined ? { accountId: other } : { accountId }
    },
  }
}

export async function startIdentityProvider(options: Options = {}): Promise<IdentityProvider> {
  const accounts = new Map<string, Account>()
  const clients = [...(options.clients ?? [])]
  const server = createServer((request, response) => {
    answer(request, response).catch((error: Error) => {
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain' })
      response.end(error.message)
    })
  })
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let provider = createProvider(issuer, { ...options, clients }, accounts)

  const login = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const interaction: Interaction = await provider.interactionDetails(request, response)
    if (request.method !== 'POST') {
      const html = loginPage(interaction.uid, accounts)
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html)
      return
    }
    const form = await formOf(request)
    const accountId = form.get('subject') ?? ''
    const result = accounts.has(accountId)
      ? { login: liar.login(accountId, accounts) }
      : { error: 'access_denied', error_description: 'cancelled' }
    const location = await provider.interactionResult(request, response, result, {
      mergeWithLastSubmission: false,
    })
    response.writeHead(303, { location }).end()
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    liar.request(request)
    liar.response(response)
    if (request.url?.startsWith('/login/')) await login(request, response)
    else await provider.callback()(request, response)
  }
  const identity: IdentityProvider = {
    issuer,
    accounts,
    addClient(client) {
      clients.push(client)
      provider = createProvider(issuer, { ...options, clients }, accounts)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  const liar = createLiar(issuer, () => identity.lie)
  return identity
}
