import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, preParsingHookHandler } from 'fastify'
import { type LocatedInput, withWait } from '#invoke/input-validation.ts'
import type { Admitted, InvocableOperation, Outcome } from '#invoke/invocation.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { plainSchema, type Schema } from '#kernel/contract/decimal-fields.ts'
import { Fault, internalFault } from '#kernel/contract/fault.ts'
import type { Entry, StreamItem } from '#kernel/contract/operation.ts'
import type { Log } from '#kernel/log.ts'
import type { AddLinks, LinksOf } from './answer-links.ts'
import type { StreamSettings } from './byte-stream.ts'
import { addHeaders, type CommonHeaders, type HeaderPairs, pushBudget } from './headers.ts'
import type { SendJson } from './json-answer.ts'
import { nextPageOf } from './next-page.ts'
import { abort, type RequestContexts, signalOf } from './request-context.ts'
import type { HttpMetrics } from './request-metrics.ts'
import { type EventStream, openEventStream } from './sse.ts'
import { readParameters } from './text-parameters.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: string
  }
}

export type HttpDeps = {
  contexts: RequestContexts
  common: CommonHeaders
  sendJson: SendJson
  metrics: HttpMetrics
  openEventStreams: Set<EventStream>
  sse: StreamSettings
  log: Log
  linksOf: LinksOf
}

/**
 * How long the status line waits for the first event of a stream, so that an early failure can still be an HTTP error.
 */
const firstEventMs = 250
const publicBodyBytesMax = 8 * 1024

export const routePath = (path: string): string => path.replace(/\{([^}]+)\}/g, ':$1')

export function mount(fastify: FastifyInstance, invocable: InvocableOperation, deps: HttpDeps): void {
  const { entry } = invocable.operation
  fastify.route({
    method: entry.method,
    url: routePath(entry.path),
    config: { operation: invocable.operation.name },
    // Anybody may send a body to a public operation, and a credential needs few bytes, so the limit is low.
    ...(entry.access === 'public' && { bodyLimit: publicBodyBytesMax }),
    // A HEAD request would open a stream without a reader.
    exposeHeadRoute: entry.method === 'GET' && entry.kind !== 'stream',
    onRequest: guard(invocable, deps),
    ...(entry.method !== 'GET' && { preParsing: readEmptyBody }),
    handler: createHandler(invocable, deps),
  })
}

/** Replaces the body stream of an empty request, which Node may have ended before Fastify's parser reads it. */
const readEmptyBody: preParsingHookHandler = (_request, _reply, payload, done) =>
  done(null, (payload as Readable).readableEnded ? Readable.from([]) : payload)

/** Makes all decisions that need no body, before the body is read. */
function guard({ admit, operation }: InvocableOperation, { contexts }: HttpDeps) {
  return (request: FastifyRequest, reply: FastifyReply, next: (error?: Error) => void): void => {
    const context = contexts.get(reply)
    context.operation = operation.name
    const enter = (admitted: Admitted): void => {
      context.admitted = admitted
      next(admitted.refusal)
    }
    const { authorization, 'x-backend-key': backendKey } = request.headers
    const admitted = admit({
      authorization,
      ...(typeof backendKey === 'string' && { backendKey }),
      address: request.ip,
    })
    if (admitted instanceof Promise) admitted.then(enter, next)
    else enter(admitted)
  }
}

function createHandler({ operation, readInput, call, shared }: InvocableOperation, deps: HttpDeps) {
  const locatedInput = inputLocator(operation.entry)
  const addLinks = deps.linksOf(answerSchema(operation.entry)) ?? identity
  const addEventLinks = deps.linksOf(eventSchema(operation.entry)) ?? identity
  const nextPage = nextPageOf(operation.entry)
  let sent: { outcome: Outcome; text: string } | undefined
  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { input, ...options } = readInput(locatedInput(request))
    const context = deps.contexts.get(reply)
    const { admitted } = context
    if (!admitted) throw new Error('a request that was not admitted')
    const lastEventId = request.headers['last-event-id']
    const facts = {
      id: request.id,
      address: request.ip,
      get signal() {
        return signalOf(context)
      },
      ...(typeof lastEventId === 'string' && { lastEventId }),
    }
    if (options.wait) context.mode = 'wait'
    const run = () => call(admitted, input, options, facts)
    const outcome = await (options.wait ? deps.contexts.interruptible(context, run) : run())
    if (outcome.kind === 'stream')
      return stream(outcome, request, reply, { ...deps, addLinks: addEventLinks })
    const text = textOf(outcome, addLinks)
    if (outcome === shared()) sent = { outcome, text }
    const more = nextPage?.({ url: request.url, input, body: outcome.body }) ?? []
    deps.sendJson(request, reply, text, { pairs: [...keyPairs(outcome), ...more] })
    return undefined
  }
  return (request: FastifyRequest, reply: FastifyReply): unknown => {
    // A request with a query does not get the cached answer: its query has to be validated, even if the operation
    // declares none.
    const known = sent && !request.url.includes('?') ? shared() : undefined
    if (!sent || known !== sent.outcome) return answer(request, reply)
    deps.sendJson(request, reply, sent.text)
    return undefined
  }
}

/** Path and query contain text, which their schemas parse. */
function inputLocator(entry: Entry): (request: FastifyRequest) => LocatedInput {
  const pathSchema = entry.params ? plainSchema(entry.params) : {}
  const querySchema = withWait(entry) ?? {}
  const bodySchema = entry.bodyInQuery && entry.body ? plainSchema(entry.body) : undefined
  return ({ params, query, body: sent, headers }) => {
    const key = headers['idempotency-key']
    const given = (query ?? {}) as Record<string, unknown>
    const isQuery = bodySchema !== undefined && (sent ?? null) === null
    return {
      path: readParameters(pathSchema, (params ?? {}) as Record<string, unknown>),
      query: isQuery ? {} : readParameters(querySchema, given),
      body: isQuery ? readParameters(bodySchema, given) : sent,
      ...(isQuery && { bodyLocation: 'query' as const }),
      idempotencyKey: typeof key === 'string' ? key : undefined,
    }
  }
}

type Answer = Extract<Outcome, { kind: 'answer' }>

const textOf = ({ body }: Answer, addLinks: AddLinks): string => JSON.stringify(addLinks(body ?? null))

function keyPairs({ replayed, key }: Pick<Outcome, 'replayed' | 'key'>): HeaderPairs {
  const pairs: HeaderPairs = []
  if (replayed) pairs.push('idempotent-replayed', 'true')
  if (key !== undefined) pairs.push('idempotency-key', key)
  return pairs
}

const identity: AddLinks = (value) => value

const answerSchema = (entry: Entry): Schema => plainSchema(entry.output ?? eventSchema(entry))
const eventSchema = (entry: Entry): Schema =>
  plainSchema(entry.kind === 'stream' ? entry.event : entry.output)

async function stream(
  outcome: Extract<Outcome, { kind: 'stream' }>,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: HttpDeps & { addLinks: AddLinks },
): Promise<FastifyReply> {
  const context = deps.contexts.get(reply)
  const iterator = outcome.items[Symbol.asyncIterator]()
  // The disposal ends the stream's count against the user's limit of open streams, even if the event stream cannot be
  // opened.
  using _reading: Disposable = { [Symbol.dispose]: () => void iterator.return?.() }
  const first = iterator.next()
  // A failure of the first event is answered as an HTTP error. If no event arrives within `firstEventMs`, the stream is
  // opened without one.
  await withTimeLimit(first, firstEventMs)
  const pairs = [...deps.common.pairs(request), ...keyPairs(outcome)]
  pushBudget(pairs, context.admitted?.budget)
  addHeaders(reply, pairs)
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
  // The signal ends a producer that is still waiting; the answer does not wait for the producer.
  abort(context)
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
