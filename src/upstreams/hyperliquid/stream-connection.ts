import type { WebSocketTransport } from '@nktkas/hyperliquid'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { isReadableFrame } from './frame-check.ts'
import { createReconnectBackoff, reconnectDelayMs } from './reconnect-backoff.ts'
import type { Subscription } from './stream-topics.ts'
import { type Channel, type ChannelMessage, type OnSkipped, parseMessage } from './wire.ts'

/** The web socket to the venue and its lasting subscriptions. */

type ConnectionOptions = {
  url: string
  clock: Clock
  random: Random
  log: Log
  onSkipped?: OnSkipped | undefined
  onClose: () => void
}
export type StreamConnection = {
  options: ConnectionOptions
  ended: AbortController
  reconnectDelayMs: (attempt: number) => number
  connecting: Promise<WebSocketTransport> | undefined
  connected: boolean
  /** How often the socket opened. */
  connections: number
  unreadable: number
  openedMs: number
  lastMessageMs: number
  /** The parsed form of each message, by the event detail in which the message arrived. */
  readMessages: WeakMap<object, unknown>
}

const requestMs = 10_000
const pingEveryMs = 30_000
/** How many characters of a dropped frame are logged. */
const loggedMax = 200

export function createStreamConnection(options: ConnectionOptions): StreamConnection {
  const { clock, random } = options
  return {
    options,
    ended: new AbortController(),
    reconnectDelayMs: createReconnectBackoff(() => clock.now().getTime(), random).delayMs,
    connecting: undefined,
    connected: false,
    connections: 0,
    unreadable: 0,
    openedMs: 0,
    lastMessageMs: 0,
    readMessages: new WeakMap(),
  }
}

export const nowMs = ({ options }: StreamConnection) => options.clock.now().getTime()

/** Opens the socket at the first call; the transport reconnects by itself. */
export function openConnection(connection: StreamConnection): Promise<WebSocketTransport> {
  connection.connecting ??= import('@nktkas/hyperliquid').then(({ WebSocketTransport }) => {
    const opened = new WebSocketTransport({
      url: connection.options.url,
      timeout: requestMs,
      keepAlive: { interval: pingEveryMs, timeout: requestMs },
      reconnect: { reconnectionDelay: connection.reconnectDelayMs, connectionTimeout: requestMs },
    })
    dropUnreadableFrames(connection, opened.socket)
    opened.socket.addEventListener('open', () => {
      connection.connections += 1
      connection.connected = true
      connection.openedMs = nowMs(connection)
      connection.lastMessageMs = connection.openedMs
    })
    opened.socket.addEventListener('close', () => {
      connection.connected = false
      connection.options.onClose()
    })
    return opened
  })
  return connection.connecting
}

/** Drops unreadable frames before the library's listeners, which are added when the transport is made. */
function dropUnreadableFrames(connection: StreamConnection, socket: EventTarget): void {
  const dispatch = socket.dispatchEvent.bind(socket)
  socket.dispatchEvent = (event) => {
    if (event.type !== 'message') return dispatch(event)
    const { data } = event as MessageEvent
    if (isReadableFrame(data)) return dispatch(event)
    connection.unreadable += 1
    const frame = typeof data === 'string' ? data.slice(0, loggedMax) : typeof data
    connection.options.log.debug({ frame }, 'frame of the venue stream dropped')
    return true
  }
}

export async function closeConnection({ connecting }: StreamConnection): Promise<void> {
  const transport = await connecting?.catch(() => undefined)
  transport?.close()
}

/** Isolates listeners: one that throws ends neither the stream nor the process. */
export function emit<T>(log: Log, listeners: Iterable<(event: T) => void>, event: T): void {
  for (const listener of listeners)
    try {
      listener(event)
    } catch (error) {
      log.error({ error }, 'listener of the venue stream failed')
    }
}

/** All subscriptions of a channel receive the same message, so it is parsed once and stays one object. */
export function readOnce<K extends Channel>(
  { readMessages, options }: StreamConnection,
  channel: K,
  detail: unknown,
): ChannelMessage<K> | undefined {
  const parse = () => {
    try {
      return parseMessage(channel, detail, options.onSkipped)
    } catch (error) {
      options.log.error({ error, channel }, 'message of the venue stream failed to parse')
      return undefined
    }
  }
  if (typeof detail !== 'object' || detail === null) return parse()
  if (!readMessages.has(detail)) readMessages.set(detail, parse())
  return readMessages.get(detail) as ChannelMessage<K> | undefined
}

/** Subscribes until disposed, and again after each refusal and each lost connection. */
export function keepSubscribed<K extends Channel>(
  connection: StreamConnection,
  { channel, user }: Subscription & { channel: K },
  read: (message: ChannelMessage<K> | undefined) => void,
): Disposable {
  const { log, random } = connection.options
  const stop = new AbortController()
  const signal = AbortSignal.any([stop.signal, connection.ended.signal])
  let timer: NodeJS.Timeout | undefined
  let current: { unsubscribe(): Promise<void> } | undefined
  const listen = (event: CustomEvent<unknown>) => {
    connection.lastMessageMs = nowMs(connection)
    const message = readOnce(connection, channel, event.detail)
    if (message === undefined) connection.unreadable += 1
    emit(log, [read], message)
  }
  const attempt = async (failures: number): Promise<void> => {
    const retry = (error: unknown) => {
      if (signal.aborted) return
      log.debug({ error, channel }, 'subscription at the venue failed; retrying')
      clearTimeout(timer)
      timer = setTimeout(() => void attempt(failures + 1), reconnectDelayMs(failures, random))
    }
    try {
      const transport = await openConnection(connection)
      const payload = { type: channel, ...(user && { user }) }
      const onError = () => retry(undefined)
      current = await transport.subscribe(channel, payload, listen, { signal, onError })
    } catch (error) {
      retry(error)
    }
  }
  void attempt(0)
  return {
    [Symbol.dispose]() {
      stop.abort()
      clearTimeout(timer)
      current?.unsubscribe().catch((error: unknown) => log.debug({ error }, 'unsubscription failed'))
    },
  }
}
