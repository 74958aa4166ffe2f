import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BudgetState } from '#invoke/rate-limits.ts'
import type { Clock } from '#kernel/clock.ts'
import { budgetHeaders } from './rate-limit-headers.ts'

const requestIdForm = /^[\w-]{8,64}$/

/** Uses the caller's request id if it has a valid form, or else a new UUIDv7. */
export const requestIds = (
  clock: Clock,
): ((request: { headers: Record<string, string | string[] | undefined> }) => string) => {
  const next = timedUuids(clock)
  return ({ headers }) => {
    const given = headers['x-request-id']
    return typeof given === 'string' && requestIdForm.test(given) ? given : next()
  }
}

const poolBytes = 4_096
const digitsPerId = 18

/** Makes UUIDv7s from a pool of random digits: to generate bytes for each request costs as much as routing it. */
function timedUuids(clock: Clock): () => string {
  let pool = ''
  let used = 0
  let lastMs = Number.NaN
  let prefix = ''
  return () => {
    const ms = clock.now().getTime()
    if (ms !== lastMs) {
      lastMs = ms
      const digits = ms.toString(16).padStart(12, '0')
      prefix = `${digits.slice(0, 8)}-${digits.slice(8)}-7`
    }
    if (used + digitsPerId > pool.length) {
      pool = randomBytes(poolBytes).toString('hex')
      used = 0
    }
    const at = used
    used += digitsPerId
    return `${prefix}${pool.slice(at, at + 3)}-8${pool.slice(at + 3, at + 6)}-${pool.slice(at + 6, at + 18)}`
  }
}

/** Every answer has these headers, but pages that run scripts have a content security policy of their own. */
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

const discoveryPaths =
  /^\/(?:\.well-known\/|(?:openapi\.json|error-catalog\.json|llms\.txt|skill\.md|mcp\/server-card)(?:\?|$))/
const isDiscovery = (url: string): boolean => discoveryPaths.test(url)

const securityPairs = Object.entries(securityHeaders).flat()

/** Names and values of headers alternate in this list, as `writeHead` takes them. */
export type HeaderPairs = string[]
export type CommonHeaders = {
  pairs(request: FastifyRequest): HeaderPairs
  isAllowedOrigin(request: FastifyRequest): boolean
}

/** Handles CORS for pages of other origins. Credentials travel in a header, so cookies are never allowed. */
export function commonHeaders(origins: readonly string[]): CommonHeaders {
  const list = new Set(origins)
  const all = list.has('*')
  const isOpen = (url: string): boolean => all || isDiscovery(url)
  return {
    pairs(request) {
      const pairs = [...securityPairs, 'x-request-id', request.id, 'cache-control', 'no-store']
      const open = isOpen(request.url)
      if (!open) pairs.push('vary', 'Origin')
      const { origin } = request.headers
      if (origin !== undefined && (open || list.has(origin)))
        pairs.push(
          'access-control-allow-origin',
          open ? '*' : origin,
          'access-control-expose-headers',
          exposedHeaders,
        )
      return pairs
    },
    isAllowedOrigin: ({ url, headers: { origin } }) =>
      origin !== undefined && (isOpen(url) || list.has(origin)),
  }
}

export function pushBudget(pairs: HeaderPairs, budget: BudgetState | undefined): void {
  const headers = budgetHeaders(budget)
  for (const name of Object.keys(headers)) pairs.push(name, headers[name]!)
}

/** Adds the headers that the handler of a page did not set itself; values of `Vary` are combined. */
export function addHeaders(reply: FastifyReply, pairs: HeaderPairs): void {
  for (let index = 0; index < pairs.length; index += 2) {
    const name = pairs[index]!
    const value = pairs[index + 1]!
    const own = reply.getHeader(name)
    if (own === undefined) reply.header(name, value)
    else if (name === 'vary') reply.header(name, `${value}, ${String(own)}`)
  }
}

/**
 * Whether a request has several Host headers: Node uses the first one, but a proxy in front may have checked another
 * one.
 */
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

/** Answers a CORS preflight; an origin that is not allowed gets no CORS headers, so its browser sends nothing. */
export function answerPreflight(
  reply: FastifyReply,
  methods: readonly string[],
  { isAllowed }: { isAllowed: boolean },
): FastifyReply {
  if (isAllowed) {
    reply.header('access-control-allow-methods', methods.join(', '))
    reply.header('access-control-allow-headers', allowedHeaders)
    reply.header('access-control-max-age', String(preflightSeconds))
  }
  return reply.code(204).header('allow', methods.join(', ')).send()
}
