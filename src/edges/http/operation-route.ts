import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type LocatedInput, withWait } from '#invoke/input.ts'
import type { InvocableOperation, Outcome } from '#invoke/invocation.ts'
import { plainSchema, type Schema } from '#kernel/decimal-fields.ts'
import { Fault, internalFault } from '#kernel/fault.ts'
import type { Log } from '#kernel/log.ts'
import type { Entry, StreamItem } from '#kernel/operation.ts'
import { withTimeLimit } from '#kernel/time-limit.ts'
import { budgetHeaders } from './budget-headers.ts'
import type { HttpMetrics } from './http-metrics.ts'
import type { AddLinks, LinksOf } from './links.ts'
import type { RequestContexts } from './request-context.ts'
import { type EventStream, openEventStream, type SseSettings } from './sse.ts'
import { readParameters } from './text-parameters.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Name of the operation behind a route, for measurements. */
    operation?: string
  }
}

export type HttpDeps = {
  contexts: RequestContexts
  metrics: HttpMetrics
  openEventStreams: Set<EventStream>
  sse: SseSettings
  log: Log
  linksOf: LinksOf
}

/** How long the first event may take while the status line can still carry an error. */
const firstEventMs = 250
const publicBodyBytesMax = 8 * 1024

export const routePath = (path: string): string => path.replace(/\{([^}]+)\}/g, ':$1')

export function mount(fastify: FastifyInstance, invocable: InvocableOperation, deps: HttpDeps): void {
  const { entry } = invocable.operation
  fastify.route({
    method: entry.method,
    url: routePath(entry.path),
    config: { operation: invocable.operation.name },
    // Every caller may send here, and a credential needs few bytes.
    ...(entry.access === 'public' && { bodyLimit: publicBodyBytesMax }),
    // A HEAD would open a stream without a reader.
    exposeHeadRoute: entry.method === 'GET' && entry.kind !== 'stream',
    onRequest: guard(invocable, deps),
    handler: createHandler(invocable, deps),
  })
}

/** All decisions before the body is read. */
function guard({ admit }: InvocableOperation, { contexts }: HttpDeps) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { authorization } = request.headers
    const admitted = await admit({ authorization, address: request.ip })
    contexts.get(request).admitted = admitted
    reply.headers(budgetHeaders(admitted.budget))
    if (admitted.refusal) throw admitted.refusal
  }
}

function createHandler({ operation, readInput, call }: InvocableOperation, deps: HttpDeps) {
  const locatedInput = inputLocator(operation.entry)
  const addLinks = deps.linksOf(answerSchema(operation.entry)) ?? identity
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { input, ...options } = readInput(locatedInput(request))
    const context = deps.contexts.get(request)
    const { admitted } = context
    if (!admitted) throw new Error('a request that was not admitted')
    const lastEventId = request.headers['last-event-id']
    const facts = {
      id: request.id,
      address: request.ip,
      get signal() {
        return context.signal
      },
      ...(typeof lastEventId === 'string' && { lastEventId }),
    }
    if (options.wait) context.mode = 'wait'
    const run = () => call(admitted, input, options, facts)
    const outcome = await (options.wait ? deps.contexts.interruptible(context, run) : run())
    return outcome.kind === 'stream'
      ? stream(outcome, request, reply, { ...deps, addLinks })
      : send(outcome, reply, addLinks)
  }
}

/** Path and query carry text, which their schemas read. */
function inputLocator(entry: Entry): (request: FastifyRequest) => LocatedInput {
  const pathSchema = entry.params ? plainSchema(entry.params) : {}
  const querySchema = withWait(entry) ?? {}
  return ({ params, query, body, headers }) => {
    const key = headers['idempotency-key']
    return {
      path: readParameters(pathSchema, (params ?? {}) as Record<string, unknown>),
      query: readParameters(querySchema, (query ?? {}) as Record<string, unknown>),
      body,
      idempotencyKey: typeof key === 'string' ? key : undefined,
    }
  }
}

function send(
  { body, replayed, key }: Extract<Outcome, { kind: 'answer' }>,
  reply: FastifyReply,
  addLinks: AddLinks,
): FastifyReply {
  if (replayed) reply.header('idempotent-replayed', 'true')
  if (key !== undefined) reply.header('idempotency-key', key)
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(addLinks(body ?? null)))
}

const identity: AddLinks = (value) => value

const answerSchema = (entry: Entry): Schema =>
  plainSchema(entry.kind === 'stream' ? entry.event : entry.output)

async function stream(
  { items }: Extract<Outcome, { kind: 'stream' }>,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: HttpDeps & { addLinks: AddLinks },
): Promise<FastifyReply> {
  const context = deps.contexts.get(request)
  const iterator = items[Symbol.asyncIterator]()
  // Gives the place of the stream back, also where the answer cannot be opened.
  using _reading: Disposable = { [Symbol.dispose]: () => void iterator.return?.() }
  const first = iterator.next()
  // A failure of the first event is still an HTTP error; a silent stream opens after a moment.
  await withTimeLimit(first, firstEventMs)
  const events = openEventStream(reply, deps.sse)
  deps.openEventStreams.add(events)
  deps.metrics.streamOpened()
  context.mode = 'stream'
  if (deps.contexts.isClosing()) events.finish()
  const pumped = pump(events, iterator, first, deps.addLinks).catch(async (error: unknown) => {
    const fault = error instanceof Fault ? error : internalFault(error, { mayHaveActed: false })
    const { code, message, retryable } = fault
    if (code === 'internal')
      deps.log.error({ request_id: request.id, error: fault.cause ?? fault }, 'stream failed')
    await events.write({ event: 'error', data: { message, code, retryable, request_id: request.id } })
  })
  await Promise.race([pumped, events.ended])
  events.finish()
  // A producer in the middle of a wait ends by its signal; the answer does not wait for that.
  context.abort()
  deps.openEventStreams.delete(events)
  deps.metrics.streamClosed()
  return reply
}

async function pump(
  events: EventStream,
  iterator: AsyncIterator<StreamItem>,
  first: Promise<IteratorResult<StreamItem>>,
  addLinks: AddLinks,
): Promise<void> {
  const shown = (item: StreamItem): StreamItem =>
    'comment' in item ? item : { ...item, data: addLinks(item.data) }
  let found = await first
  while (!found.done && (await events.write(shown(found.value)))) found = await iterator.next()
}
