import { setTimeout as pause } from 'node:timers/promises'
import { type Backoff, backoffMs, withJitter } from '#kernel/async/backoff.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { NetStream, StreamingNet } from '#kernel/wire/upstream-http.ts'
import { createAnthropicReader } from './anthropic-reader.ts'
import { anthropicBody } from './anthropic-request.ts'
import { createEventParser } from './event-stream.ts'
import { isRetried, statusFault, unreadable } from './faults.ts'
import { openAiReader } from './openai-reader.ts'
import { openAiBody } from './openai-request.ts'
import { type OptionalField, rejectedField } from './rejected-fields.ts'
import type { ModelEvent, ModelLimits, ModelRequest, TurnReader } from './turn.ts'
import { createTurnClock, type TurnClock } from './turn-clock.ts'

export type ModelApi = 'openai' | 'anthropic'
export type Model = {
  name: string
  /**
   * Yields the events of one turn. Throws a Fault if the endpoint fails, or the signal's reason if it is aborted.
   * The request ends when the caller stops reading.
   */
  turn(request: ModelRequest, options?: { signal?: AbortSignal }): AsyncGenerator<ModelEvent, void>
}
type Options = {
  /** The URL up to and including the version: `https://api.openai.com/v1`. */
  url: string
  api: ModelApi
  name: string
  key: string | undefined
  net: StreamingNet
  random: Random
  limits: ModelLimits
  /** The pauses between attempts; its maximum is also the longest pause that an endpoint may ask for. */
  backoff?: Backoff
}

const errorBytesMax = 64 * 1024
const endMsMax = 200
const attemptsMax = 3
const anthropicVersion = '2023-06-01'

const interfaces = {
  openai: {
    path: '/chat/completions',
    body: openAiBody,
    reader: openAiReader,
    headers: (key: string | undefined) => (key === undefined ? {} : { authorization: `Bearer ${key}` }),
  },
  anthropic: {
    path: '/messages',
    body: anthropicBody,
    reader: createAnthropicReader,
    headers: (key: string | undefined) => ({
      'anthropic-version': anthropicVersion,
      ...(key !== undefined && { 'x-api-key': key }),
    }),
  },
}

const usedIds = ({ messages }: ModelRequest): string[] =>
  messages.flatMap((message) => (message.role === 'assistant' ? message.calls.map(({ id }) => id) : []))

async function errorText({ chunks }: NetStream): Promise<string> {
  const found: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of chunks) {
      found.push(chunk)
      size += chunk.length
      if (size > errorBytesMax) break
    }
  } catch (error) {
    // An error body that breaks off is read as far as it came: its status is known, and decides the fault.
    if (!(error instanceof Fault)) throw error
  }
  return Buffer.concat(found).subarray(0, errorBytesMax).toString()
}

export function createModelEndpoint({
  url,
  api,
  name,
  key,
  net,
  random,
  limits,
  backoff = { firstMs: 500, maxMs: 20_000 },
}: Options): Model {
  const { path, body, reader: createReader, headers } = interfaces[api]
  /** The optional fields that this model refuses, learned once for all turns. */
  const rejected = new Set<OptionalField>()

  const send = (request: ModelRequest, signal: AbortSignal): Promise<NetStream> => {
    const tokensMax = Math.min(request.tokensMax ?? limits.tokensMax, limits.tokensMax)
    return net.open({
      url: url + path,
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers(key) },
      body: JSON.stringify(body(request, { model: name, tokensMax, rejected })),
      timeoutMs: limits.totalMs,
      signal,
      maxBytes: limits.answerBytesMax,
    })
  }

  type Attempt =
    | { stream: NetStream }
    | { fault: Fault; isRetried: boolean; retryAfterMs?: number | undefined }

  /** Sends one request, and repeats it at once without the optional fields that the model refuses. */
  async function attempt(request: ModelRequest, signal: AbortSignal): Promise<Attempt> {
    for (;;) {
      const stream = await send(request, signal).catch((error: unknown) => {
        if (error instanceof Fault && !signal.aborted) return error
        throw error
      })
      // No byte has arrived, and a turn has no effect, so the request may be repeated.
      if (stream instanceof Fault) return { fault: stream, isRetried: stream.retryable }
      const { status, retryAfterMs, contentType } = stream
      if (status === 200) {
        if (/^text\/event-stream\b/i.test(contentType)) return { stream }
        throw unreadable('an answer that is no stream of events')
      }
      const text = await errorText(stream)
      const field = rejectedField(status, text)
      if (field !== undefined && !rejected.has(field)) {
        rejected.add(field)
        continue
      }
      const fault = statusFault({ status, body: text, retryAfterMs, model: name, key })
      return { fault, isRetried: isRetried(status), retryAfterMs }
    }
  }

  async function open(request: ModelRequest, clock: TurnClock): Promise<NetStream> {
    for (let attempts = 1; ; attempts++) {
      clock.start()
      const result = await attempt(request, clock.signal)
      if ('stream' in result) return result.stream
      const wantedMs = result.retryAfterMs ?? withJitter(backoffMs(backoff, attempts - 1), random)
      const waitMsMax = Math.min(backoff.maxMs, clock.leftMs())
      if (!result.isRetried || attempts >= attemptsMax || wantedMs > waitMsMax) throw result.fault
      clock.begin()
      await pause(wantedMs, undefined, { signal: clock.signal })
    }
  }

  async function* read(
    stream: NetStream,
    reader: TurnReader,
    clock: TurnClock,
  ): AsyncGenerator<ModelEvent, void> {
    const parser = createEventParser(limits.answerBytesMax)
    const decoder = new TextDecoder()
    const chunks = stream.chunks[Symbol.asyncIterator]()
    while (!reader.isComplete()) {
      const { done: isOver, value } = await clock.idle(chunks.next())
      if (isOver) break
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        const found = reader.read(event)
        if (reader.hasBegun()) clock.begin()
        yield* found
        if (reader.isComplete()) break
      }
    }
    yield* reader.end()
    // The end of the body frees the connection for the next turn.
    await withTimeLimit(
      chunks.next().catch(() => undefined),
      endMsMax,
    )
  }

  return {
    name,
    async *turn(request, { signal } = {}) {
      signal?.throwIfAborted()
      using clock = createTurnClock(limits, signal)
      try {
        const stream = await open(request, clock)
        const { toolCallsMax } = limits
        yield* read(stream, createReader({ toolCallsMax, usedIds: usedIds(request), key }), clock)
      } catch (error) {
        throw clock.reasonOf(error)
      }
    },
  }
}
