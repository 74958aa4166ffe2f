import { setTimeout as pause } from 'node:timers/promises'
import { backoffMs } from '#kernel/async/backoff.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { parseJson } from '#kernel/wire/json.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { away } from './answer-reader.ts'
import { errorOf, faultOf, isRetried } from './errors.ts'

/** Sends requests to Relay, and repeats them a few times if the reply is no answer. */

export type RelayRequests = {
  get(path: string, query: Record<string, string>, signal?: AbortSignal): Promise<unknown>
  post(path: string, body: object, options: PostOptions): Promise<unknown>
}
type PostOptions = {
  signal: AbortSignal | undefined
  /** Called before each attempt of the request; a fault that it throws ends the request. */
  beforeAttempt: () => void
}
type Options = { url: string; net: Net; apiKey: string | undefined }
type Sent = {
  method: 'GET' | 'POST'
  path: string
  body?: string
  attemptsMax: number
  beforeAttempt?: () => void
}
type Attempt = { value: unknown } | { retry: Fault; afterMs?: number | undefined }

const timeoutMs = 5_000
const maxBytes = 256 * 1024
const backoff = { firstMs: 200, maxMs: 1_000 }
/** If Relay asks for a longer wait than this, the request fails, and the caller decides. */
const waitMsMax = 2_000
const tooBusy = 429

export function createRelayRequests({ url, net, apiKey }: Options): RelayRequests {
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    ...(apiKey !== undefined && { 'x-api-key': apiKey }),
  }

  async function attempt({ method, path, body }: Sent, signal?: AbortSignal): Promise<Attempt> {
    const request = { url: `${url}${path}`, method, headers, timeoutMs, maxBytes }
    const reply = await net
      .fetch({ ...request, ...(body !== undefined && { body }), ...(signal && { signal }) })
      .catch((error: unknown) => {
        if (error instanceof Fault && error.retryable) return error
        throw error
      })
    if (reply instanceof Fault) return { retry: away('does not answer') }
    const { status, retryAfterMs } = reply
    if (status === tooBusy) return { retry: away('limits its requests', retryAfterMs), afterMs: retryAfterMs }
    const json = parseJson(reply.body)
    // A reply that is no JSON is a page of a proxy in front of Relay.
    if (json === undefined) return { retry: away('sent no JSON') }
    if (status === 200) return { value: json }
    const error = errorOf(json)
    if (error && !isRetried(error)) throw faultOf(error)
    return { retry: away(`answered with status ${status}`, retryAfterMs), afterMs: retryAfterMs }
  }

  async function send(sent: Sent, signal?: AbortSignal): Promise<unknown> {
    for (let tried = 1; ; tried += 1) {
      sent.beforeAttempt?.()
      const result = await attempt(sent, signal)
      if ('value' in result) return result.value
      const { retry, afterMs = backoffMs(backoff, tried - 1) } = result
      if (tried >= sent.attemptsMax || afterMs > waitMsMax || signal?.aborted) throw retry
      await pause(afterMs, undefined, signal && { signal })
    }
  }

  return {
    get: (path, query, signal) =>
      send({ method: 'GET', path: `${path}?${new URLSearchParams(query)}`, attemptsMax: 2 }, signal),
    post: (path, body, { signal, beforeAttempt }) =>
      send({ method: 'POST', path, body: JSON.stringify(body), attemptsMax: 3, beforeAttempt }, signal),
  }
}
