import { connectionError, errorOf, PorticoError } from './errors.ts'
import { parseJson } from './json.ts'
import type { OperationRow } from './operations.ts'
import { mayRepeat, pause, retryDelayMs } from './retry.ts'
import type { TokenSource } from './token-source.ts'

export type Input = Readonly<Record<string, unknown>>
export type CallOptions = {
  /** If absent, each call gets a new key. Repeat a call whose answer was lost under the key of its first try. */
  idempotencyKey?: string | undefined
  signal?: AbortSignal | undefined
  /** The time limit of each attempt. A call with `wait` has its `timeout` and 10 s more. */
  timeoutMs?: number | undefined
  maxRetries?: number | undefined
}
export type Reply = { response: Response; data: unknown }
export type StreamOptions = {
  signal: AbortSignal
  lastEventId?: string | undefined
  idempotencyKey?: string | undefined
}

export type Transport = {
  call(row: OperationRow, input: Input, options: CallOptions): Promise<Reply>
  /** Opens a stream: the caller reads the body, and the connection lasts until the signal is aborted. */
  open(row: OperationRow, input: Input, options: StreamOptions): Promise<Response>
}

export type TransportOptions = {
  baseUrl: string
  timeoutMs: number
  maxRetries: number
  fetch: typeof globalThis.fetch
  tokens: TokenSource | undefined
}

/** How long the gateway may take beyond the time for which a call waits. */
const waitGraceMs = 10_000

type Attempt = {
  request: () => { url: string; init: RequestInit }
  timeoutMs: number
  maxRetries: number
  isRepeatable: boolean
  isSignIn: boolean
  signal: AbortSignal | undefined
  readsBody: boolean
}

export function createTransport(options: TransportOptions): Transport {
  const { baseUrl, timeoutMs, maxRetries, tokens } = options
  // Browsers require that `fetch` is called without a receiver.
  const { fetch } = options

  const attempt = async (
    { request, timeoutMs: limitMs, signal, readsBody }: Attempt,
    token: string | undefined,
    retries: number,
  ): Promise<Reply> => {
    const { url, init } = request()
    const headers = new Headers(init.headers)
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    if (retries > 0) headers.set('x-retry-count', String(retries))
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), limitMs)
    const signals = signal ? [limit.signal, signal] : [limit.signal]
    try {
      const response = await fetch(url, { ...init, headers, signal: AbortSignal.any(signals) })
      if (response.ok && !readsBody) return { response, data: undefined }
      const data = parseJson(await response.text())
      if (response.ok && data !== undefined) return { response, data }
      throw Object.assign(errorOf(response.status, data), { response })
    } catch (error) {
      if (error instanceof PorticoError) throw error
      signal?.throwIfAborted()
      if (limit.signal.aborted)
        throw connectionError('timeout', `No answer within ${limitMs} ms from ${baseUrl}`, error)
      throw connectionError('connection_failed', `No answer from ${baseUrl}: ${reasonOf(error)}`, error)
    } finally {
      clearTimeout(timer)
    }
  }

  const send = async (given: Attempt): Promise<Reply> => {
    let token = given.isSignIn ? undefined : await tokens?.get()
    let isRenewed = false
    for (let retries = 0; ; ) {
      try {
        return await attempt(given, token, retries)
      } catch (error) {
        if (!(error instanceof PorticoError)) throw error
        if (error.code === 'invalid_token' && token !== undefined && !isRenewed) {
          isRenewed = true
          const renewed = await tokens?.renew(token)
          if (renewed === undefined) throw error
          token = renewed
          continue
        }
        const delayMs = retryDelayMs(retries, retryAfterOf(error))
        if (retries >= given.maxRetries || delayMs === undefined || !mayRepeat(error, given)) throw error
        await pause(delayMs, given.signal)
        retries++
      }
    }
  }

  /** Adds the signature to an act. The token is requested first, because its answer shows the gateway's time. */
  const signedInput = async (row: OperationRow, input: Input): Promise<Input> => {
    if (!row.isSigned || input.signature !== undefined || !tokens?.signAct) return input
    await tokens.get()
    const says = row.signs?.map((field) => [input[field]].flat().join(',')).join(':')
    return { ...input, ...(await tokens.signAct(row.name, says)) }
  }

  return {
    async call(row, given, { idempotencyKey, signal, timeoutMs: ownTimeoutMs, maxRetries: ownRetries }) {
      const input = await signedInput(row, given)
      const key = row.isKeyed ? (idempotencyKey ?? keyBeside(input)) : undefined
      return send({
        request: () => requestOf(baseUrl, row, input, key),
        timeoutMs: ownTimeoutMs ?? waitMsOf(row, input) ?? timeoutMs,
        maxRetries: ownRetries ?? maxRetries,
        isRepeatable: row.isKeyed || row.kind === 'read',
        isSignIn: row.isSignIn,
        signal,
        readsBody: true,
      })
    },
    async open(row, input, { signal, lastEventId, idempotencyKey }) {
      const key = input.idempotency_key === undefined ? idempotencyKey : undefined
      const { response } = await send({
        request() {
          const { url, init } = requestOf(baseUrl, row, input, key)
          const headers = new Headers(init.headers)
          headers.set('accept', `text/event-stream, ${accepted}`)
          if (lastEventId !== undefined) headers.set('last-event-id', lastEventId)
          return { url, init: { ...init, headers } }
        },
        timeoutMs,
        maxRetries,
        isRepeatable: true,
        isSignIn: row.isSignIn,
        signal,
        readsBody: false,
      })
      return response
    },
  }
}

const keyBeside = ({ idempotency_key }: Input): string | undefined =>
  idempotency_key === undefined ? crypto.randomUUID() : undefined

/**
 * Asks for errors in the format of RFC 9457, whose body contains the message, the invalid fields and all other details.
 */
const accepted = 'application/json, application/problem+json'

function requestOf(
  baseUrl: string,
  row: OperationRow,
  input: Input,
  key: string | undefined,
): { url: string; init: RequestInit } {
  const path: Record<string, unknown> = {}
  const query = new URLSearchParams()
  const body: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined) continue
    if (row.pathFields.includes(name)) path[name] = value
    else if (row.queryFields.includes(name) || !row.hasBody)
      for (const each of [value].flat()) query.append(name, String(each))
    else body[name] = value
  }
  const filled = row.path.replace(/\{([^}]+)\}/g, (_, name: string) => {
    if (path[name] === undefined) throw new TypeError(`${row.name} requires ${name}`)
    return encodeURIComponent(String(path[name]))
  })
  const headers: Record<string, string> = { accept: accepted }
  if (key !== undefined) headers['idempotency-key'] = key
  if (row.hasBody) headers['content-type'] = 'application/json'
  return {
    url: `${baseUrl}${filled}${query.size > 0 ? `?${query}` : ''}`,
    init: { method: row.method, headers, ...(row.hasBody && { body: JSON.stringify(body) }) },
  }
}

function waitMsOf({ waitSeconds, isAnswered }: OperationRow, { wait, timeout }: Input): number | undefined {
  if (waitSeconds === undefined || !(isAnswered || wait === true)) return undefined
  return (typeof timeout === 'number' ? timeout : waitSeconds) * 1_000 + waitGraceMs
}

function retryAfterOf(error: PorticoError): string | null {
  const response = 'response' in error ? error.response : undefined
  return response instanceof Response ? response.headers.get('retry-after') : null
}

/** Returns the reason of a failure, which `fetch` hides in the cause of its error. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message || error.message : error.message
}
