import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Invoke, Reply } from '#durable/run-operation.ts'
import { addressKey } from '#kernel/address-key.ts'
import type { Schema } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import type { Log } from '#kernel/log.ts'
import type { Entry, Operation, RateClass, StreamItem } from '#kernel/operation.ts'
import { type Authenticate, authorize } from './authenticate.ts'
import { inputLocations, type LocationOf, locateIssues } from './input-location.ts'
import type { RateLimits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import type { OpenStreams } from './open-streams.ts'
import type { Overload } from './overload.ts'
import { faultOf, internalFault } from './problem.ts'
import type { RequestContexts } from './request-context.ts'
import { filterBySchema } from './schema-filter.ts'
import { type EventStream, openEventStream, type SseSettings } from './sse.ts'
import type { ReadInput, RequestParts } from './validate.ts'

export type HttpDeps = {
  call: Invoke
  authenticate: Authenticate
  contexts: RequestContexts
  limits: RateLimits
  overload: Overload
  metrics: Metrics
  streams: OpenStreams
  sse: SseSettings
  log: Log
  /** Tests hold each answer against its schema; in production an answer is sent as it is. */
  checkAnswer: ((operation: Operation, body: unknown) => void) | undefined
}

/** How long the first event may take while the status line can still tell of a refusal. */
const firstEventMs = 250
const publicBodyBytesMax = 8 * 1024

export const routePath = (path: string): string => path.replace(/\{([^}]+)\}/g, ':$1')

export const rateClassOf = (entry: Entry): RateClass => {
  if (entry.rate) return entry.rate
  if (entry.kind === 'stream') return 'stream'
  return entry.kind === 'read' ? 'read' : 'money'
}

export function mount(fastify: FastifyInstance, operation: Operation, read: ReadInput, deps: HttpDeps): void {
  const { entry } = operation
  const answer = createHandler(operation, read, deps)
  fastify.route({
    method: entry.method,
    url: routePath(entry.path),
    // A HEAD would open the stream for nobody.
    // Anybody may send here, and a credential needs few bytes.
    ...(entry.access === 'public' && { bodyLimit: publicBodyBytesMax }),
    exposeHeadRoute: entry.method === 'GET' && entry.kind !== 'stream',
    onRequest: guard(entry, deps),
    handler: answer,
  })
}

/** Everything that is decided before the body is read: load, credential, scope, points. */
function guard(entry: Entry, { authenticate, contexts, limits, overload }: HttpDeps) {
  const rate = rateClassOf(entry)
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const overloadFault = overload.refusal(rate)
    if (overloadFault) throw overloadFault
    const address = addressKey(request.ip)
    const { authorization } = request.headers
    const context = contexts.get(request)
    context.caller = await authorize(entry.access, authorization, authenticate).catch(
      async (error: unknown) => {
        // Counted after the look-up, so that bad credentials never refuse a good one from the same address. Asking
        // without a credential is how clients find the way in.
        const isGuess = authorization !== undefined && error instanceof Fault && error.status === 401
        throw (isGuess ? (await limits.consume('refused', address)).fault : undefined) ?? error
      },
    )
    const principal = context.caller && rate !== 'auth' ? `user:${context.caller.userId}` : address
    const { headers, fault } = await limits.consume(rate, principal)
    reply.headers(headers)
    if (fault && entry.counts !== 'failures') throw fault
    context.rateLimitFault = fault
  }
}

function createHandler(operation: Operation, read: ReadInput, deps: HttpDeps) {
  const { entry } = operation
  const locationOf = inputLocations(entry)
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { input, wait, timeoutMs, key } = read(partsOf(request))
    const context = deps.contexts.get(request)
    const lastEventId = request.headers['last-event-id']
    const facts = {
      id: request.id,
      address: request.ip,
      get signal() {
        return context.signal
      },
      ...(typeof lastEventId === 'string' && { lastEventId }),
    }
    using waiting = wait && context.caller ? deps.streams.wait(context.caller.userId) : undefined
    // Over the share the task goes on as without waiting, and the answer shows it as it stands.
    const options = { wait, timeoutMs: wait && !waiting ? 0 : timeoutMs, ...(key !== undefined && { key }) }
    const run = () => deps.call(operation, input, context.caller, options, facts)
    const answer = await (wait ? deps.contexts.interruptible(context, run) : run()).catch(
      (error: unknown) => {
        const fault = faultOf(error) ?? internalFault(error, entry.kind === 'task' || entry.kind === 'act')
        throw fault.status < 500 ? (context.rateLimitFault ?? locateIssues(fault, locationOf)) : fault
      },
    )
    if (answer.kind === 'stream') return stream({ items: answer.items, locationOf }, request, reply, deps)
    return send(operation, answer, reply, deps)
  }
}

function partsOf(request: FastifyRequest): RequestParts {
  const key = request.headers['idempotency-key']
  return {
    params: (request.params ?? {}) as Record<string, unknown>,
    query: (request.query ?? {}) as Record<string, unknown>,
    body: request.body,
    idempotencyKey: typeof key === 'string' ? key : undefined,
  }
}

function send(
  operation: Operation,
  { body, replayed, key }: Extract<Reply, { kind: 'answer' }>,
  reply: FastifyReply,
  { checkAnswer }: HttpDeps,
): FastifyReply {
  const { entry } = operation
  if (replayed) reply.header('idempotent-replayed', 'true')
  if (key !== undefined) reply.header('idempotency-key', key)
  const schema = 'output' in entry ? (entry.output as unknown as Schema) : undefined
  const shown = schema ? filterBySchema(schema, body) : body
  checkAnswer?.(operation, shown)
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(shown ?? null))
}

async function stream(
  { items, locationOf }: { items: AsyncIterable<StreamItem>; locationOf: LocationOf },
  request: FastifyRequest,
  reply: FastifyReply,
  deps: HttpDeps,
): Promise<FastifyReply> {
  const context = deps.contexts.get(request)
  const { promise: refused, resolve: refuse } = Promise.withResolvers<Fault>()
  const { authorization } = request.headers
  using _slot = deps.streams.open({ userId: context.caller?.userId ?? '', authorization, refuse })
  const iterator = items[Symbol.asyncIterator]()
  const first = iterator.next()
  await waitAtMost(first, firstEventMs).catch((error: unknown) => {
    throw error instanceof Fault ? locateIssues(error, locationOf) : error
  })
  const events = openEventStream(reply, deps.sse)
  deps.streams.eventStreams.add(events)
  deps.metrics.streamOpened()
  if (deps.contexts.isClosing()) events.finish()
  const fail = ({ message, code, retryable }: Fault) =>
    events.write({ event: 'error', data: { message, code, retryable, request_id: request.id } })
  const pumped = pump(events, iterator, first).catch(async (error: unknown) => {
    const fault = faultOf(error) ?? internalFault(error, false)
    if (fault.code === 'internal') deps.log.error({ requestId: request.id, err: error }, 'stream failed')
    await fail(fault)
  })
  await Promise.race([pumped, events.ended, refused.then(fail)])
  events.finish()
  // A producer in the middle of a wait ends by its signal; the answer does not wait for that.
  context.abort()
  void iterator.return?.().catch(() => undefined)
  deps.streams.eventStreams.delete(events)
  deps.metrics.streamClosed()
  return reply
}

async function pump(
  events: EventStream,
  iterator: AsyncIterator<StreamItem>,
  first: Promise<IteratorResult<StreamItem>>,
): Promise<void> {
  let found = await first
  while (!found.done && (await events.write(found.value))) found = await iterator.next()
}

/** Waits for the first event, whose failure is still an HTTP error; a silent stream opens after a moment. */
async function waitAtMost(first: Promise<unknown>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  try {
    await Promise.race([first, promise])
  } finally {
    clearTimeout(timer)
    first.catch(() => undefined)
  }
}
