import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { acceptsGzip } from '#invoke/gzip.ts'
import type { RateLimits } from '#invoke/rate-limits.ts'
import { faults } from '#kernel/contract/fault.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'
import { budgetHeaders } from './rate-limit-headers.ts'

/** This module serves the documents of the HTTP server that belong to no operation. */

const cacheControl = 'public, max-age=3600'
const jsonType = 'application/json; charset=utf-8'

const etagOf = (body: string): string =>
  `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`

export type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/**
 * Documents and answers to wrong paths cost the server something too, so each request for one counts as a read in the
 * rate limit of the client's address.
 */
export const readGuard =
  (limits: RateLimits): Guard =>
  async (request, reply) => {
    const { budget, fault } = await limits.consume('read', addressKey(request.ip))
    reply.headers(budgetHeaders(budget))
    if (fault) throw fault
  }

const compress = promisify(gzip)
const compressedFromBytes = 1_024

async function sendBytes(
  request: FastifyRequest,
  reply: FastifyReply,
  page: { bytes: Buffer; gzipped?: Promise<Buffer> },
): Promise<FastifyReply> {
  if (page.bytes.length < compressedFromBytes) return reply.send(page.bytes)
  const { vary } = reply.getHeaders()
  reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`)
  if (!acceptsGzip(request.headers['accept-encoding'])) return reply.send(page.bytes)
  page.gzipped ??= compress(page.bytes)
  return reply.header('content-encoding', 'gzip').send(await page.gzipped)
}

type PublicDocument = {
  guards: Guard | Guard[]
  path: string
  text: () => string | Promise<string>
  type?: string
  headers?: () => Record<string, string>
}

export function serveDocument(
  fastify: FastifyInstance,
  { guards, path, text, type = jsonType, headers = () => ({}) }: PublicDocument,
): void {
  let known: { body: string; etag: string; bytes: Buffer; gzipped?: Promise<Buffer> } | undefined
  fastify.get(path, { onRequest: guards }, async (request, reply) => {
    const body = await text()
    if (known?.body !== body) known = { body, etag: etagOf(body), bytes: Buffer.from(body) }
    const page = known
    reply.headers({ 'cache-control': cacheControl, etag: page.etag, ...headers() })
    if (request.headers['if-none-match']?.includes(page.etag)) return reply.code(304).send()
    return sendBytes(request, reply.type(type), page)
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

/**
 * The API reference runs only the scripts of its package and the inline scripts of its page, and connects to this
 * server only.
 */
const docsPolicy = (page: Buffer): string => {
  const inline = [...page.toString('utf8').matchAll(/<script(?![^>]* src=)[^>]*>([\s\S]*?)<\/script>/g)]
  const hashes = inline.map(
    ([, script = '']) => ` 'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  )
  return [
    "default-src 'none'",
    `script-src 'self'${hashes.join('')}`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

const referencePaths = ['/docs', '/docs/js/scalar.js']

/**
 * The API reference weighs megabytes and most processes never show it, so the first request loads it into a
 * separate server that never listens, and its answers are cached.
 */
export function serveDocs(fastify: FastifyInstance, guard: Guard): void {
  let reference: Promise<FastifyInstance> | undefined
  type Page = {
    status: number
    type: string
    location: string | undefined
    policy: string
    bytes: Buffer
    gzipped?: Promise<Buffer>
  }
  const known = new Map<string, Page>()
  const load = async (url: string): Promise<Page> => {
    reference ??= loadReference()
    const { statusCode: status, headers, rawPayload: bytes } = await (await reference).inject(url)
    const type = String(headers['content-type'])
    const policy = docsPolicy(type.startsWith('text/html') ? bytes : Buffer.alloc(0))
    return { status, type, location: headers.location, policy, bytes }
  }
  for (const path of referencePaths) {
    fastify.get(path, { onRequest: guard }, async (request, reply) => {
      // Only the two spellings of the path, with and without a trailing slash, are loaded and cached.
      const url = request.url.split('?', 1)[0]?.endsWith('/') ? `${path}/` : path
      const page = known.get(url) ?? (await load(url))
      known.set(url, page)
      const { location, type, status, policy } = page
      reply.headers({ 'content-security-policy': policy, 'cache-control': cacheControl })
      if (location !== undefined) return reply.redirect(location, status)
      return sendBytes(request, reply.code(status).type(type), page)
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
