import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '#kernel/clock.ts'

const requestIdForm = /^[\w-]{8,64}$/

/** The caller's own id where it has a valid form, else a new UUIDv7. */
export const requestIds =
  (clock: Clock) =>
  (request: { headers: Record<string, string | string[] | undefined> }): string => {
    const given = request.headers['x-request-id']
    return typeof given === 'string' && requestIdForm.test(given) ? given : timedUuid(clock.now())
  }

/**
 * A UUIDv7 whose random part comes from Node's own pool: generating bytes for each request costs as much as routing it.
 */
function timedUuid(at: Date): string {
  const ms = at.getTime().toString(16).padStart(12, '0')
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${randomUUID().slice(15)}`
}

/** Pages that run scripts replace the policy by their own. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

const exposedHeaders = [
  'WWW-Authenticate',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-Request-Id',
  'Idempotency-Key',
  'Idempotent-Replayed',
  'MCP-Protocol-Version',
  'Allow',
].join(', ')
const allowedHeaders = [
  'Authorization',
  'Content-Type',
  'Accept',
  'Idempotency-Key',
  'Last-Event-ID',
  'X-Request-Id',
  'X-Retry-Count',
  'Traceparent',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
].join(', ')
const preflightSeconds = 600

const discoveryPaths = /^\/(?:\.well-known\/|(?:openapi\.json|error-catalog\.json|mcp\/server-card)(?:\?|$))/
const isDiscovery = (url: string): boolean => discoveryPaths.test(url)

export type Cors = (request: FastifyRequest, reply: FastifyReply) => void

/** CORS for pages of other origins. Credentials travel in a header, so cookies are never allowed. */
export function cors(origins: readonly string[]): Cors {
  const list = new Set(origins)
  const all = list.has('*')
  return (request, reply) => {
    const open = all || isDiscovery(request.url)
    if (!open) reply.header('vary', 'Origin')
    const { origin } = request.headers
    if (origin === undefined || !(open || list.has(origin))) return
    reply.header('access-control-allow-origin', open ? '*' : origin)
    reply.header('access-control-expose-headers', exposedHeaders)
  }
}

/** Node keeps the first of several; a proxy in front may have checked another one. */
export function hasTwoHosts({ rawHeaders }: { rawHeaders: readonly string[] }): boolean {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts > 1
}

export const isPreflight = (request: FastifyRequest): boolean =>
  request.method === 'OPTIONS' &&
  request.headers.origin !== undefined &&
  request.headers['access-control-request-method'] !== undefined

/** Without an allowed origin the answer is as empty, and the browser does not send the request. */
export function answerPreflight(reply: FastifyReply, methods: readonly string[]): FastifyReply {
  if (reply.hasHeader('access-control-allow-origin')) {
    reply.header('access-control-allow-methods', methods.join(', '))
    reply.header('access-control-allow-headers', allowedHeaders)
    reply.header('access-control-max-age', String(preflightSeconds))
  }
  return reply.code(204).header('allow', methods.join(', ')).send()
}
