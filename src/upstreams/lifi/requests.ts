import { setTimeout as pause } from 'node:timers/promises'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { parseText } from '#kernel/money/provider-answer-reader.ts'
import { isRecord, parseJson } from '#kernel/wire/json.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { away, providerName } from './answer-reader.ts'

/** Sends requests to LI.FI, which counts quotes over two hours: after a refusal, none is sent for a while. */

export type LifiRequests = {
  get(path: string, query: Record<string, string>, options: GetOptions): Promise<unknown>
}
type GetOptions = {
  signal: AbortSignal | undefined
  /** Called before each attempt of the request; a fault that it throws ends the request. */
  beforeAttempt?: () => void
}
type Options = { url: string; net: Net; apiKey: string | undefined }
type Attempt = { value: unknown } | { retry: Fault }

const timeoutMs = 5_000
const maxBytes = 512 * 1024
const attemptsMax = 2
const retryMs = 300
const tooBusy = 429
/** How long to wait after the status 429 if the reply does not say when the limit ends. */
const limitedMs = 60_000
const limitedMsMax = 2 * 3_600_000
const noQuote = 1002
const noRouteCodes = [noQuote, 1003, 1004, 1007]

function faultOf(body: unknown): Fault | undefined {
  if (!isRecord(body) || typeof body.code !== 'number') return undefined
  const extras = { upstream: providerName, upstream_code: String(body.code) }
  if (noRouteCodes.includes(body.code))
    return new Fault('no_route', 'There is no route for this swap', { extras })
  // Code 1011 rejects a value of the request. The gateway's requests are well formed, so LI.FI does not support this
  // value.
  if (body.code === 1011)
    return new Fault(
      'no_route',
      `LI.FI does not serve this swap: ${parseText(body.message) ?? 'no reason'}`,
      {
        extras,
      },
    )
  return undefined
}

export function createLifiRequests({ url, net, apiKey }: Options): LifiRequests {
  const headers = {
    accept: 'application/json',
    ...(apiKey !== undefined && { 'x-lifi-api-key': apiKey }),
  }
  const limitedUntilMs = new Map<string, number>()

  async function attempt(path: string, search: string, signal?: AbortSignal): Promise<Attempt> {
    const request = { url: `${url}${path}?${search}`, method: 'GET', headers, timeoutMs, maxBytes }
    const reply = await net.fetch({ ...request, ...(signal && { signal }) }).catch((error: unknown) => {
      if (error instanceof Fault && error.retryable) return error
      throw error
    })
    if (reply instanceof Fault) return { retry: away('does not answer') }
    const { status, retryAfterMs } = reply
    if (status === tooBusy) {
      const waitMs = Math.min(retryAfterMs ?? limitedMs, limitedMsMax)
      limitedUntilMs.set(path, monotonicMs() + waitMs)
      throw away('limits its requests', waitMs)
    }
    const json = parseJson(reply.body)
    // A reply that is no JSON is a page of a proxy in front of LI.FI.
    if (json === undefined) return { retry: away('sent no JSON') }
    if (status === 200) return { value: json }
    const fault = faultOf(json)
    if (fault) throw fault
    return { retry: away(`answered with status ${status}`) }
  }

  return {
    async get(path, query, { signal, beforeAttempt }) {
      const leftMs = (limitedUntilMs.get(path) ?? 0) - monotonicMs()
      if (leftMs > 0) throw away('limits its requests', leftMs)
      const search = String(new URLSearchParams(query))
      for (let tried = 1; ; tried += 1) {
        beforeAttempt?.()
        const result = await attempt(path, search, signal)
        if ('value' in result) return result.value
        if (tried >= attemptsMax || signal?.aborted) throw result.retry
        await pause(retryMs, undefined, signal && { signal })
      }
    },
  }
}
