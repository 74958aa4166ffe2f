import { createHash } from 'node:crypto'
import scalar from '@scalar/fastify-api-reference'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault, faults } from '#kernel/fault.ts'
import type { Metrics } from './metrics.ts'

/** The documents that belong to the door itself and to no operation. */

const cacheControl = 'public, max-age=3600'
const jsonType = 'application/json; charset=utf-8'

const etagOf = (body: string): string =>
  `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`

/** A public document with a validator, so that a second reader gets 304. */
export function serveDocument(
  fastify: FastifyInstance,
  path: string,
  text: () => string,
  type: string = jsonType,
  headers: () => Record<string, string> = () => ({}),
): void {
  let known = { body: '', etag: '' }
  fastify.get(path, async (request, reply) => {
    const body = text()
    if (known.body !== body) known = { body, etag: etagOf(body) }
    const { etag } = known
    reply.headers({ 'cache-control': cacheControl, etag, ...headers() })
    if (request.headers['if-none-match']?.includes(etag)) return reply.code(304).send()
    return reply.type(type).send(body)
  })
}

export const errorCatalog = (): string =>
  JSON.stringify({
    codes: Object.entries(faults).map(([code, { status, retryable, when }]) => ({
      code,
      status,
      retryable,
      when,
    })),
  })

/** Scripts and styles come from the package alone; the page may talk to this server and to nothing else. */
const docsPolicy = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export async function serveDocs(fastify: FastifyInstance): Promise<void> {
  await fastify.register(async (scope) => {
    scope.addHook('onRequest', async (_request, reply) => {
      reply.header('content-security-policy', docsPolicy)
      reply.header('cache-control', cacheControl)
    })
    await scope.register(scalar, {
      routePrefix: '/docs',
      configuration: {
        url: '/openapi.json',
        pageTitle: 'Portico',
        withDefaultFonts: false,
        telemetry: false,
        hideClientButton: true,
        showDeveloperTools: 'never',
        agent: { disabled: true },
        mcp: { disabled: true },
      },
    })
  })
}

const loopback = /^(?:127\.|::1$|::ffff:127\.)/

/** Numbers of the inside are for the machine's own scraper: direct from loopback, through no proxy. */
export function serveMetrics(fastify: FastifyInstance, metrics: Metrics): void {
  fastify.get('/metrics', async (request: FastifyRequest, reply: FastifyReply) => {
    const direct = request.headers['x-forwarded-for'] === undefined && request.headers.forwarded === undefined
    if (!direct || !loopback.test(request.socket.remoteAddress ?? '')) {
      throw new Fault('not_found', 'There is no such path')
    }
    return reply.type(metrics.contentType).send(await metrics.text())
  })
}
