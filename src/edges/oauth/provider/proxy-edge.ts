import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { RateLimits } from '#invoke/rate-limits.ts'
import { createWindowCounter } from '#kernel/async/window-counter.ts'
import type { Clock } from '#kernel/clock.ts'
import { isOwnClient } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'
import type { OAuthEdge } from './oauth-edge.ts'
import { readText, withoutParsers } from './request-bodies.ts'

/**
 * Serves the endpoints of an external authorization server under addresses of the gateway: browsers are redirected, and
 * clients' requests are forwarded. If the gateway is a client of that server, it also serves its own pages, with its
 * own sign-in and tokens.
 */

type ExternalServer = NonNullable<OAuth['external']>
type ProxyEdgeDeps = {
  server: ExternalServer
  /** The pages of this gateway and their sign-in; absent if this gateway has no pages. */
  own: OAuthEdge | undefined
  limits: RateLimits
  clock: Clock
}

const hourMs = 3_600_000
const registrationsPerHour = 30
const addressesMax = 50_000
const bodyBytesMax = 64 * 1_024

/** Returns the metadata of the server, with the endpoints replaced that this gateway serves. */
export async function proxiedMetadata(server: ExternalServer, base: string): Promise<object> {
  const metadata = await server.metadata()
  return {
    ...metadata,
    authorization_endpoint: `${base}${oauthPaths.authorize}`,
    token_endpoint: `${base}${oauthPaths.token}`,
    ...(metadata.registration_endpoint !== undefined && {
      registration_endpoint: `${base}${oauthPaths.register}`,
    }),
  }
}

const searchOf = ({ raw }: FastifyRequest): string => {
  const at = (raw.url ?? '').indexOf('?')
  return at < 0 ? '' : raw.url!.slice(at + 1)
}

const clientsOf = (request: FastifyRequest): string[] =>
  new URLSearchParams(searchOf(request)).getAll('client_id')

export function createProxyEdge({
  server,
  own,
  limits,
  clock,
}: ProxyEdgeDeps): (fastify: FastifyInstance) => void {
  const registrations = createWindowCounter({ keysMax: addressesMax, nowMs: () => clock.now().getTime() })

  const refuse = (reply: FastifyReply, status: number, sentence: string, retryAfter = 60) =>
    reply
      .code(status)
      .headers({ 'cache-control': 'no-store', 'retry-after': String(retryAfter) })
      .send({ error: 'temporarily_unavailable', error_description: sentence })
  const isLimited = async (request: FastifyRequest, reply: FastifyReply): Promise<boolean> => {
    const { fault } = await limits.consume('auth', addressKey(request.ip))
    if (fault) refuse(reply, 429, 'Too many requests', Number(fault.extras.retry_after ?? 60))
    return fault !== undefined
  }
  /** OAuth errors keep the form of RFC 6749. */
  const guarded = async (reply: FastifyReply, run: () => Promise<unknown>) => {
    try {
      await run()
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'unavailable') throw error
      refuse(reply, 503, error.message, 10)
    }
    return reply
  }
  const forward = (name: 'token_endpoint' | 'registration_endpoint') =>
    async function forwardTo(request: FastifyRequest, reply: FastifyReply) {
      if (await isLimited(request, reply)) return reply
      return guarded(reply, async () => {
        const { status, body } = await server.send(name, {
          contentType: request.headers['content-type'] ?? '',
          authorization: request.headers.authorization,
          body: await readText(request.raw, bodyBytesMax),
        })
        reply
          .code(status)
          .headers({ 'cache-control': 'no-store', 'content-type': 'application/json' })
          .send(body)
      })
    }

  const authorize = async (request: FastifyRequest, reply: FastifyReply) => {
    if (await isLimited(request, reply)) return reply
    return guarded(reply, async () => {
      const { authorization_endpoint } = await server.metadata()
      const target = new URL(String(authorization_endpoint))
      for (const [name, value] of new URLSearchParams(searchOf(request)))
        target.searchParams.append(name, value)
      reply.code(302).headers({ location: target.href, 'cache-control': 'no-store' }).send()
    })
  }
  const redeem = forward('token_endpoint')
  const register = forward('registration_endpoint')

  return withoutParsers((scope) => {
    own?.mountPages(scope)
    scope.get(oauthPaths.authorize, { exposeHeadRoute: false }, async (request, reply) =>
      own && clientsOf(request).some(isOwnClient) ? own.authorize(request, reply) : authorize(request, reply),
    )
    scope.post(oauthPaths.token, async (request, reply) =>
      own?.isOwnRequest(request.raw) ? own.token(request, reply) : redeem(request, reply),
    )
    scope.post(oauthPaths.register, async (request, reply) => {
      const { count } = registrations.add(addressKey(request.ip), hourMs)
      if (count > registrationsPerHour) return refuse(reply, 429, 'Too many registrations', 3_600)
      return register(request, reply)
    })
  })
}
