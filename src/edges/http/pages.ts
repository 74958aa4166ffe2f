import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
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

const referencePaths = ['/docs', '/docs/js/scalar.js']

/**
 * The reference weighs megabytes and most processes never show it, so it is loaded by its first reader: into a server
 * of its own that never listens, whose answers are kept.
 */
export function serveDocs(fastify: FastifyInstance): void {
  let reference: Promise<FastifyInstance> | undefined
  const known = new Map<string, Awaited<ReturnType<FastifyInstance['inject']>>>()
  for (const path of referencePaths) {
    fastify.get(path, async (request, reply) => {
      reference ??= loadReference()
      const url = request.url.split('?', 1)[0] ?? path
      const page = known.get(url) ?? (await (await reference).inject(url))
      known.set(url, page)
      const { location, 'content-type': type } = page.headers
      reply.headers({ 'content-security-policy': docsPolicy, 'cache-control': cacheControl })
      if (location !== undefined) return reply.redirect(location, page.statusCode)
      return reply.code(page.statusCode).type(String(type)).send(page.rawPayload)
    })
  }
}

async function loadReference(): Promise<FastifyInstance> {
  const { default: scalar } = await import('@scalar/fastify-api-reference')
  const server = Fastify({ routerOptions: { ignoreTrailingSlash: true } })
  await server.register(scalar, {
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
  return server
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
