import { connectionError, errorOf, PorticoError } from './errors.ts'
import { jittered, pause } from './retry.ts'

export type StreamEvent<Data = unknown> = {
  id?: string
  event?: string
  data: Data
}
export type FollowOptions = {
  signal?: AbortSignal | undefined
  /** The id of the event after which the stream begins. */
  lastEventId?: string | undefined
  /** How many connections in a row may fail; a failure of the first one is thrown at once. Default: 10. */
  maxReconnects?: number | undefined
  /**
   * The idempotency key of a stream whose request starts an operation; if absent, the client makes one. To repeat a
   * request whose answer was lost, send the same key again.
   */
  idempotencyKey?: string | undefined
  /** Called when a connection has ended early, before the next one is tried. */
  onLost?: (() => void) | undefined
  /** Called when a connection is open: the first one, and each that follows a lost one. */
  onOpen?: (() => void) | undefined
}
type Open = (lastEventId: string | undefined, signal: AbortSignal) => Promise<Response>

/** The gateway writes a comment every 15 s; a connection that is silent for three times as long is cut. */
const silenceMsMax = 45_000
const blockCharactersMax = 1_048_576
const reconnectMsMax = 30_000

/**
 * Yields the events of a stream until the caller stops reading, and resumes after the last received event whenever a
 * connection ends. With `hasEnd`, the stream ends at the event `done`, and an event `error` with an id is final.
 */
export async function* follow(
  open: Open,
  { hasEnd = false, ...options }: FollowOptions & { hasEnd?: boolean | undefined },
): AsyncGenerator<StreamEvent> {
  const { signal, maxReconnects = 10 } = options
  let lastEventId = options.lastEventId
  let reconnectMs = 1_000
  let wasOpen = false
  let isOver = false
  for (let failures = 0; ; ) {
    const connection = new AbortController()
    try {
      const signals = signal ? [connection.signal, signal] : [connection.signal]
      const response = await open(lastEventId, AbortSignal.any(signals))
      if (!wasOpen || failures > 0) options.onOpen?.()
      wasOpen = true
      for await (const { id, retryMs, ...event } of frames(response, connection)) {
        failures = 0
        if (id !== undefined) lastEventId = id
        if (retryMs !== undefined) reconnectMs = retryMs
        const { data } = event
        if (data === undefined) continue
        if (event.event === 'error') {
          // An `error` event with an id is stored, so another connection would only repeat this event.
          isOver = hasEnd && id !== undefined
          throw errorOf(500, data)
        }
        yield { ...event, data, ...(id !== undefined && { id }) }
        if (hasEnd && event.event === 'done') return
      }
    } catch (error) {
      signal?.throwIfAborted()
      const isLost = error instanceof PorticoError ? error.retryable : isNetworkError(error)
      if (isOver || !wasOpen || !isLost || failures >= maxReconnects) throw error
    } finally {
      connection.abort()
    }
    failures++
    if (failures === 1) options.onLost?.()
    await pause(jittered(reconnectMs * 2 ** Math.min(failures - 1, 10), reconnectMsMax), signal)
  }
}

const isNetworkError = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof Error && error.name === 'AbortError')

type Frame = { id?: string; event?: string; data?: unknown; retryMs?: number }

async function* frames(response: Response, connection: AbortController): AsyncGenerator<Frame> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (!reader) return
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await withinSilence(reader.read(), connection)
      if (done) return
      rest = (rest + value).replace(/\r\n|\r(?!$)/g, '\n')
      const blocks = rest.split('\n\n')
      rest = blocks.pop() ?? ''
      if (rest.length > blockCharactersMax)
        throw connectionError('connection_failed', 'An event of the stream is over 1 MiB', undefined)
      for (const block of blocks) yield frameOf(block)
    }
  } finally {
    // To cancel a connection that has broken off may fail, which needs no report.
    reader.cancel().catch(() => {})
  }
}

async function withinSilence<T>(read: Promise<T>, connection: AbortController): Promise<T> {
  let isSilent = false
  const timer = setTimeout(() => {
    isSilent = true
    connection.abort()
  }, silenceMsMax)
  try {
    return await read
  } catch (error) {
    if (!isSilent) throw error
    throw connectionError('timeout', `The stream was silent for ${silenceMsMax} ms`, error)
  } finally {
    clearTimeout(timer)
  }
}

/** Reads a block of lines as the standard of server-sent events does. */
function frameOf(block: string): Frame {
  const frame: Frame = {}
  const data: string[] = []
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon === 0) continue
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'data') data.push(value)
    else if (name === 'id') frame.id = value
    else if (name === 'event') frame.event = value
    else if (name === 'retry' && /^\d+$/.test(value)) frame.retryMs = Number(value)
  }
  if (data.length > 0) frame.data = parsed(data.join('\n'))
  return frame
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw connectionError('connection_failed', 'An event of the stream is not JSON', error)
  }
}
