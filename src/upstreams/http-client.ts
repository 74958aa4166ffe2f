import { Agent, type Dispatcher } from 'undici'
import { Fault } from '#kernel/contract/fault.ts'
import type { Failpoints } from '#kernel/failpoint.ts'
import { createCounter, createHistogram, type ReadMetrics } from '#kernel/metrics.ts'
import type { Net, NetReply, NetRequest, NetStream, StreamingNet } from '#kernel/wire/upstream-http.ts'

type Options = {
  failpoints: Failpoints
  /** A readable name per origin for failpoints and messages; the host is used if there is none. */
  labels?: Readonly<Record<string, string>>
  connectionsPerOrigin?: number
}

const connectTimeoutMs = 2_000
const failuresToOpen = 8
const openForMs = 1_000

/** The codes of errors that occur before any byte of a request is sent. */
const notSentCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

export type MeasuredNet = Net & StreamingNet & { metrics: ReadMetrics } & AsyncDisposable

type Breaker = { failures: number; openUntilMs: number }

const nowMs = () => performance.now()

const durationBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** The keep-alive HTTP client of all adapters, with timeouts, a size limit and one circuit breaker per origin. */
export function createHttpClient({
  failpoints,
  labels = {},
  connectionsPerOrigin = 32,
}: Options): MeasuredNet {
  const agents = new Map<string, Agent>()
  const agentOf = (localAddress: string | undefined): Agent => {
    const known = agents.get(localAddress ?? '')
    if (known) return known
    const agent = new Agent({
      connections: connectionsPerOrigin,
      pipelining: 1,
      keepAliveTimeout: 30_000,
      keepAliveMaxTimeout: 120_000,
      connect: { timeout: connectTimeoutMs, ...(localAddress !== undefined && { localAddress }) },
    })
    agents.set(localAddress ?? '', agent)
    return agent
  }
  const breakers = new Map<string, Breaker>()

  const breakerOf = (origin: string): Breaker => {
    const known = breakers.get(origin)
    if (known) return known
    const fresh = { failures: 0, openUntilMs: 0 }
    breakers.set(origin, fresh)
    return fresh
  }

  const counted = createCounter('portico_upstream_requests_total', 'Requests to upstreams, by result')
  const durations = createHistogram(
    'portico_upstream_request_duration_seconds',
    'Duration of requests to upstreams that were sent, whatever their result',
    durationBounds,
  )

  /** Runs one exchange behind the breaker of its origin, and counts its result. */
  async function send<Reply extends { status: number }>(
    request: NetRequest,
    exchange: (agent: Agent, url: URL, label: string) => Promise<Reply>,
  ): Promise<Reply> {
    const url = new URL(request.url)
    const label = labels[url.origin] ?? url.host
    // All hosts without a label are counted together.
    const upstream = labels[url.origin] ?? 'other'
    const breaker = breakerOf(url.origin)
    if (breaker.openUntilMs > nowMs()) {
      counted.add({ upstream, result: 'circuit_open' })
      throw new Fault('unavailable', `${label} is not answering; further requests are paused for a second`)
    }
    await failpoints.pass(`net:${label}:before`)
    const startedMs = nowMs()
    const count = (result: string) => {
      counted.add({ upstream, result })
      durations.series({ upstream })((nowMs() - startedMs) / 1_000)
    }
    try {
      const reply = await exchange(agentOf(request.localAddress), url, label)
      count(resultOf(reply.status))
      breaker.failures = 0
      await failpoints.pass(`net:${label}:after`)
      return reply
    } catch (cause) {
      if (cause instanceof Fault || request.signal?.aborted) {
        count(cause instanceof Fault ? 'invalid_reply' : 'cancelled')
        throw cause
      }
      // After its pause, an open breaker admits one request; another failure opens it again at once.
      if (++breaker.failures >= failuresToOpen) breaker.openUntilMs = nowMs() + openForMs
      const fault = faultOf(label, cause)
      count(fault.code === 'unavailable' ? 'unreachable' : 'timeout')
      throw fault
    }
  }

  const fetch = (request: NetRequest) => send(request, (agent, url) => wholeReply(agent, url, request))
  const open = (request: NetRequest) =>
    send(request, (agent, url, label) => openedReply(agent, url, { request, label }))

  const metrics: ReadMetrics = () => [counted.read(), durations.read()]
  const destroyAll = async () => {
    await Promise.all([...agents.values()].map((agent) => agent.destroy()))
  }

  return { fetch, open, metrics, [Symbol.asyncDispose]: destroyAll }
}

function resultOf(status: number): string {
  if (status === 429) return 'rate_limited'
  if (status >= 500) return 'server_error'
  return status >= 400 ? 'client_error' : 'ok'
}

function begin(agent: Agent, url: URL, request: NetRequest): Promise<Dispatcher.ResponseData> {
  const clock = AbortSignal.timeout(request.timeoutMs)
  const signal = request.signal ? AbortSignal.any([request.signal, clock]) : clock
  return agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: request.method as 'GET',
    headers: request.headers,
    body: request.body ?? null,
    signal,
    headersTimeout: request.timeoutMs,
    bodyTimeout: request.timeoutMs,
  })
}

async function* boundedChunks(body: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0
  // A body that is not read to its end is destroyed when the loop ends.
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw new Fault('upstream_rejected', `The reply exceeds ${maxBytes} bytes`)
    yield chunk
  }
}

async function wholeReply(agent: Agent, url: URL, request: NetRequest): Promise<NetReply> {
  const { statusCode, headers, body } = await begin(agent, url, request)
  const chunks: Buffer[] = []
  for await (const chunk of boundedChunks(body, request.maxBytes)) chunks.push(chunk)
  const retryAfterMs = delayOf(headers['retry-after'])
  return {
    status: statusCode,
    body: Buffer.concat(chunks).toString('utf8'),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(request.replyHeaders && { headers: wantedHeaders(headers, request.replyHeaders) }),
  }
}

type Headers = Record<string, string | string[] | undefined>
const wantedHeaders = (headers: Headers, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )

type Opening = { request: NetRequest; label: string }

async function openedReply(agent: Agent, url: URL, { request, label }: Opening): Promise<NetStream> {
  const { statusCode, headers, body } = await begin(agent, url, request)
  const retryAfterMs = delayOf(headers['retry-after'])
  return {
    status: statusCode,
    contentType: String(headers['content-type'] ?? ''),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    chunks: translated(boundedChunks(body, request.maxBytes), { request, label }),
  }
}

async function* translated(
  chunks: AsyncIterable<Buffer>,
  { request, label }: Opening,
): AsyncGenerator<Buffer> {
  try {
    yield* chunks
  } catch (cause) {
    if (cause instanceof Fault || request.signal?.aborted) throw cause
    throw new Fault('upstream_timeout', `${label} broke off its answer`, { cause })
  }
}

/** Reads a `retry-after` in seconds; no upstream of the gateway uses the form with a date. */
const delayOf = (header: string | string[] | undefined): number | undefined =>
  typeof header === 'string' && /^\d{1,6}$/.test(header) ? Number(header) * 1_000 : undefined

function faultOf(label: string, cause: unknown): Fault {
  const code = codeOf(cause)
  if (code !== undefined && notSentCodes.has(code))
    return new Fault('unavailable', `${label} cannot be reached`, { cause })
  return new Fault('upstream_timeout', `${label} did not answer in time`, { cause })
}

function codeOf(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return undefined
  if ('code' in cause && typeof cause.code === 'string') return cause.code
  return cause instanceof AggregateError ? codeOf(cause.errors[0]) : codeOf(cause.cause)
}
