import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Provider } from 'oidc-provider'
import { createAccountEdge } from '#edges/oauth/account/account-edge.ts'
import { createApprovalsEdge } from '#edges/oauth/approvals/approvals-edge.ts'
import { isSame } from '#edges/oauth/csrf-token.ts'
import { errorPage, pageHeaders } from '#edges/oauth/pages.ts'
import { oauthPaths, oauthScopes } from '#edges/oauth/paths-and-scopes.ts'
import { createInteractions, interactionRoutes } from '#edges/oauth/sign-in/interaction.ts'
import type { AnswerPage } from '#edges/oauth/sign-in/page-session.ts'
import { createSignOutEdge } from '#edges/oauth/sign-out/sign-out-edge.ts'
import type { PersonAccounts } from '#features/auth/auth.ts'
import type { Invocation } from '#invoke/invocation.ts'
import type { RateLimits } from '#invoke/rate-limits.ts'
import { createWindowCounter } from '#kernel/async/window-counter.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'
import { isNavigation } from './browser-request-checks.ts'
import { fetchDocuments } from './client-documents.ts'
import { newOwnRequestKey, ownRequestHeader } from './page-clients.ts'
import type { ProviderDeps } from './provider.ts'
import { readForm, withoutParsers } from './request-bodies.ts'
import type { Exchange } from './sign-in-request.ts'
import { userinfoOf } from './userinfo.ts'

export type OAuthEdgeDeps = Omit<ProviderDeps, 'isOwnRequest'> &
  PersonAccounts & {
    limits: RateLimits
    corsOrigins: readonly string[]
    invocation: Pick<Invocation, 'prepare'>
    operations: readonly Operation[]
    freshSignInSeconds: number
    clock: Clock
    chainName: (chainId: string) => string
    isLocal: boolean
    authenticate: (authorization: string | undefined) => Promise<Caller>
  }

const registrationsPerHour = 30
const hourMs = 3_600_000
const addressesMax = 50_000
/** The provider compares each field with all others of its name, so their number is limited. */
const queryFieldsMax = 100

const wordsOf = (text: string | null): string[] => (text ?? '').split(' ').filter(Boolean)
const identityScopes: readonly string[] = oauthScopes.filter((scope) => scope !== 'offline_access')

/**
 * Adds the OpenID parameters that clients of plain OAuth do not send to their authorization request. Without an
 * identity scope the provider grants nothing if the person allows no act, and without `prompt=consent` it drops
 * `offline_access`.
 */
function completeRequest(raw: IncomingMessage): void {
  const url = raw.url ?? ''
  const at = url.includes('?') ? url.indexOf('?') : url.length
  const fields = new URLSearchParams(url.slice(at + 1))
  // The provider refuses a field that is sent twice.
  if (raw.method !== 'GET' || ['scope', 'prompt'].some((name) => fields.getAll(name).length > 1)) return
  const scopes = wordsOf(fields.get('scope'))
  const prompts = wordsOf(fields.get('prompt'))
  const lacksIdentity = !scopes.some((scope) => identityScopes.includes(scope))
  const lacksConsent =
    scopes.includes('offline_access') && !prompts.some((prompt) => prompt === 'consent' || prompt === 'none')
  if (!lacksIdentity && !lacksConsent) return
  if (lacksIdentity) fields.set('scope', ['openid', ...scopes].join(' '))
  if (lacksConsent) fields.set('prompt', [...prompts, 'consent'].join(' '))
  raw.url = `${url.slice(0, at)}?${fields}`
}

const tooMany = (reply: FastifyReply, retryAfter: number): void => {
  void reply
    .code(429)
    .header('retry-after', String(retryAfter))
    .send({
      error: 'temporarily_unavailable',
      error_description: `Too many requests; retry in ${retryAfter} s`,
    })
}

const hasTooManyFields = ({ url }: FastifyRequest): boolean =>
  url.split('&', queryFieldsMax + 1).length > queryFieldsMax

const refuseFields = (reply: FastifyReply): void => {
  void reply.code(400).send({
    error: 'invalid_request',
    error_description: `The query has more than ${queryFieldsMax} fields`,
  })
}

/** Leaves the answer to the provider, which writes to the socket without the hooks that set headers. */
const takeOver = (request: FastifyRequest, reply: FastifyReply): void => {
  reply.hijack()
  reply.raw.setHeader('x-request-id', request.id)
  reply.raw.setHeader('x-content-type-options', 'nosniff')
  reply.raw.setHeader('x-frame-options', 'DENY')
  reply.raw.setHeader('referrer-policy', 'no-referrer')
  reply.raw.setHeader('strict-transport-security', 'max-age=31536000; includeSubDomains')
}

/** Returns the name of an app; undefined if the app is unknown, or its document is unavailable at the moment. */
const nameOfClient = async ({ Client }: Provider, clientId: string): Promise<string | undefined> =>
  (await Client.find(clientId).catch(() => undefined))?.clientName

function createOwnRequests() {
  const ownRequestKey = newOwnRequestKey()
  const isOwnRequest = ({ headers }: IncomingMessage): boolean =>
    isSame(String(headers[ownRequestHeader] ?? ''), ownRequestKey)
  return { ownRequestKey, isOwnRequest }
}

/** Only the script for passkeys may request passkey options; every other address must be opened in a window. */
const assertNavigation = (request: FastifyRequest): void => {
  if (!isNavigation(request.raw) && !stepOf(request)?.endsWith('-options'))
    throw new Fault(
      'origin_not_allowed',
      'Open this address in a browser window: scripts and frames cannot read it.',
    )
}

export type OAuthEdge = {
  /** Mounts the authorization server and the pages. */
  mount(fastify: FastifyInstance): void
  /** Mounts only the pages for people, and the sign-in that they need. */
  mountPages(scope: FastifyInstance): void
  isOwnRequest(request: IncomingMessage): boolean
  authorize(request: FastifyRequest, reply: FastifyReply): Promise<void>
  token(request: FastifyRequest, reply: FastifyReply): Promise<void>
}

/** Creates the routes for sign-in and OAuth. The first request loads the authorization server and builds it. */
export function createOAuthEdge(deps: OAuthEdgeDeps): OAuthEdge {
  const { oauth, baseUrl, limits, clock, log, corsOrigins, signUp } = deps
  const interactions = createInteractions({ ...oauth, baseUrl, clock, signUp })
  const registrations = createWindowCounter({ keysMax: addressesMax, nowMs: () => clock.now().getTime() })
  const fetch = fetchDocuments(deps.fetch, () => clock.now().getTime())
  const { ownRequestKey, isOwnRequest } = createOwnRequests()
  const providerOf = providerCache({ ...deps, fetch, isOwnRequest })

  const isLimited = async (request: FastifyRequest, reply: FastifyReply): Promise<boolean> => {
    const { fault } = await limits.consume('auth', addressKey(request.ip))
    if (fault) tooMany(reply, Number(fault.extras.retry_after ?? 60))
    return fault !== undefined
  }
  const isRegistrationLimited = (request: FastifyRequest, reply: FastifyReply): boolean => {
    const { count, endsAtMs } = registrations.add(addressKey(request.ip), hourMs)
    if (count <= registrationsPerHour) return false
    tooMany(reply, Math.max(1, Math.ceil((endsAtMs - clock.now().getTime()) / 1_000)))
    return true
  }

  const guarded = async (request: FastifyRequest, reply: FastifyReply, run: () => Promise<void>) => {
    try {
      await run()
    } catch (error) {
      const fault = error instanceof Fault ? error : undefined
      if (!fault) log.error({ error, request_id: request.id }, 'sign-in failed')
      if (!reply.raw.headersSent) reply.raw.writeHead(fault?.status ?? 500, pageHeaders())
      reply.raw.end(
        errorPage(fault?.message ?? 'Something went wrong on our side.', fault?.code ?? 'internal'),
      )
    }
  }

  const answerOpen = async (request: FastifyRequest, reply: FastifyReply, run: () => Promise<void>) => {
    if (await isLimited(request, reply)) return
    if (hasTooManyFields(request)) return refuseFields(reply)
    takeOver(request, reply)
    await guarded(request, reply, run)
  }
  const answerPage: AnswerPage = (request, reply, run) =>
    answerOpen(request, reply, async () => {
      assertNavigation(request)
      await run()
    })
  const passTo =
    (answer: AnswerPage) =>
    (request: FastifyRequest, reply: FastifyReply): Promise<void> =>
      answer(request, reply, async () => {
        const provider = await providerOf()
        await provider.callback()(withOwnAddress(request, baseUrl()), reply.raw)
      })
  const passOn = passTo(answerOpen)
  const passPage = passTo(answerPage)
  const exchangeOf = async (request: FastifyRequest, reply: FastifyReply) => ({
    request: withOwnAddress(request, baseUrl()),
    response: reply.raw,
    provider: await providerOf(),
    uid: (request.params as Params).uid,
    address: request.ip,
    startedAt: deps.clock.now(),
    sessions: deps.oauth.sessions,
  })
  const clientName = async (clientId: string) => nameOfClient(await providerOf(), clientId)
  const pageDeps = { ...deps, ownRequestKey, exchangeOf, clientName }
  const mountApprovals = createApprovalsEdge(pageDeps, answerPage, readFormOf)
  const mountAccount = createAccountEdge(pageDeps, answerPage, readFormOf)
  const mountSignOut = createSignOutEdge(pageDeps, answerPage, readFormOf)
  /** Answers a page of the sign-in, within the request limit of the client's address. */
  const pageOf = (run: Handler) => (request: FastifyRequest, reply: FastifyReply) =>
    answerPage(request, reply, async () => run(await exchangeOf(request, reply), request))
  const mountPages = (scope: FastifyInstance): void => {
    mountApprovals(scope)
    mountAccount(scope)
    scope.get(`${oauthPaths.authorize}/:uid`, { exposeHeadRoute: false }, passPage)
    mountInteractions({ scope, pageOf, interactions })
    // The cookie of an interaction is sent only to the interaction's own paths, so the callback redirects to one.
    scope.get(oauthPaths.callback, { exposeHeadRoute: false }, async (request, reply) => {
      if (await isLimited(request, reply)) return
      takeOver(request, reply)
      handOver(request, reply, oauth)
    })
  }
  return {
    mountPages,
    isOwnRequest,
    authorize: passPage,
    token: passOn,
    mount: withoutParsers((scope) => {
      mountPages(scope)
      mountSignOut(scope)
      scope.get(oauthPaths.jwks, passOn)
      scope.route({
        method: ['GET', 'POST'],
        url: oauthPaths.authorize,
        handler: (request, reply) => {
          completeRequest(request.raw)
          return passPage(request, reply)
        },
        exposeHeadRoute: false,
      })
      for (const path of [oauthPaths.token, oauthPaths.revoke, oauthPaths.introspect])
        scope.route({ method: ['POST', 'OPTIONS'], url: path, handler: passOn })
      scope.post(oauthPaths.register, async (request, reply) => {
        if (isRegistrationLimited(request, reply)) return reply
        // The provider sends CORS headers only at its other endpoints, so this one sets them itself.
        const { origin } = request.headers
        reply.raw.setHeader('vary', 'Origin')
        if (origin !== undefined && (corsOrigins.includes(origin) || corsOrigins.includes('*')))
          reply.raw.setHeader('access-control-allow-origin', origin)
        await passOn(request, reply)
        return reply
      })
      mountUserinfo(scope, deps)
    }),
  }
}

const readFormOf = ({ raw }: FastifyRequest) => readForm(raw)

const mountUserinfo = (
  scope: FastifyInstance,
  { oauth, authenticate }: Pick<OAuthEdgeDeps, 'oauth' | 'authenticate'>,
): void => {
  scope.route({
    method: ['GET', 'POST'],
    url: oauthPaths.userinfo,
    exposeHeadRoute: false,
    handler: async ({ headers }) => userinfoOf(await authenticate(headers.authorization), oauth.people),
  })
}

type InteractionRoutes = {
  scope: FastifyInstance
  /** Wraps the handler of a page with the request limits of the client's address. */
  pageOf(run: Handler): (request: FastifyRequest, reply: FastifyReply) => Promise<void>
  interactions: ReturnType<typeof createInteractions>
}
type Params = { uid: string; step?: string }
type Handler = (exchange: Exchange, request: FastifyRequest) => void | Promise<void>

const stepOf = ({ params }: FastifyRequest): string | undefined => (params as Params | undefined)?.step

function mountInteractions({ scope, pageOf, interactions }: InteractionRoutes): void {
  const options = { exposeHeadRoute: false }
  scope.get(
    interactionRoutes.show,
    options,
    pageOf((exchange, request) => {
      const { view } = request.query as { view?: unknown }
      return interactions.show(exchange, typeof view === 'string' ? view : undefined)
    }),
  )
  scope.get(
    interactionRoutes.receive,
    options,
    pageOf((exchange, request) => interactions.receive(exchange, queryOf(request))),
  )
  scope.post(
    interactionRoutes.submit,
    pageOf(async (exchange, request) =>
      interactions.submit(exchange, stepOf(request) ?? '', await readForm(request.raw)),
    ),
  )
}

/** Redirects to the interaction that the browser left for the identity provider. */
function handOver(
  request: FastifyRequest,
  { raw }: FastifyReply,
  { interactionOfState }: Pick<ProviderDeps['oauth'], 'interactionOfState'>,
): void {
  const uid = interactionOfState((request.query as { state?: unknown }).state)
  const to = `${oauthPaths.interaction}/${uid}/return?${queryOf(request)}`
  if (uid === undefined) raw.writeHead(400, pageHeaders()).end(strayCallback)
  else raw.writeHead(303, { location: to, 'cache-control': 'no-store' }).end()
}

const strayCallback = errorPage('It was not started here.', 'invalid_request')
const queryOf = ({ raw }: FastifyRequest): string => (raw.url ?? '').split('?').slice(1).join('?')

/** Sets the headers from which the provider reads host and protocol, so that a client cannot choose them. */
function withOwnAddress({ raw, ip }: FastifyRequest, baseUrl: string): IncomingMessage {
  const { host, protocol } = new URL(baseUrl)
  const { headers } = raw
  headers.host = host
  headers['x-forwarded-proto'] = protocol.slice(0, -1)
  headers['x-forwarded-for'] = ip
  delete headers['x-forwarded-host']
  return raw
}

/** Builds the provider again when its keys have changed. */
function providerCache(deps: ProviderDeps): () => Promise<Provider> {
  let known: { version: string; provider: Promise<Provider> } | undefined
  return async () => {
    const keys = await deps.oauth.keys.current()
    if (known?.version !== keys.version) {
      const provider = import('./provider.ts').then(({ createProvider }) => createProvider(deps, keys))
      known = { version: keys.version, provider }
      provider.catch(() => {
        known = undefined
      })
    }
    return known.provider
  }
}
