import type { WebSocket } from 'ws'
import { backoffMs, withJitter } from '#kernel/async/backoff.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { parseJson } from '#kernel/wire/json.ts'

/** A socket of the venue that connects again by itself. It is fast but lossy: listeners read over HTTP after a gap. */

type SocketOptions = {
  url: string
  /** Sent each time the socket opens. */
  subscription: () => unknown
  onFrame(frame: unknown): void
  /** Called when an open socket was lost. */
  onGap(): void
  random: Pick<Random, 'fraction'>
  log: Log
}
export type StreamSocket = Disposable & { isConnected(): boolean; ready(): Promise<void> }

const backoff = { firstMs: 500, maxMs: 30_000 }
/** The venue closes a socket that is silent, and answers each ping. */
const pingEveryMs = 10_000
const silentMsMax = 30_000
const handshakeTimeoutMs = 10_000
const frameBytesMax = 4 * 1024 * 1024

export function openStreamSocket(options: SocketOptions): StreamSocket {
  const { url, subscription, onFrame, onGap, random, log } = options
  let socket: WebSocket | undefined
  let isClosed = false
  let isOpen = false
  let failures = 0
  let reconnecting: NodeJS.Timeout | undefined
  let opened = Promise.withResolvers<void>()
  opened.promise.catch(() => undefined)

  const receive = (data: unknown) => {
    const text = String(data)
    if (text === 'PONG' || text === 'NO NEW ASSETS') return
    const message = parseJson(text)
    for (const frame of Array.isArray(message) ? message : [message]) onFrame(frame)
  }
  const reconnect = () => {
    if (isClosed) return
    reconnecting = setTimeout(connect, withJitter(backoffMs(backoff, failures), random))
    failures += 1
  }
  function connect(): void {
    // The library is loaded with the first stream, which no start needs.
    import('ws').then(({ WebSocket }) => {
      if (isClosed) return
      const current = new WebSocket(url, { handshakeTimeout: handshakeTimeoutMs, maxPayload: frameBytesMax })
      socket = current
      let receivedMs = performance.now()
      const pinging = setInterval(() => {
        if (performance.now() - receivedMs > silentMsMax) current.terminate()
        else if (current.readyState === current.OPEN) current.send('PING')
      }, pingEveryMs)
      current.on('open', () => {
        isOpen = true
        failures = 0
        current.send(JSON.stringify(subscription()))
        opened.resolve()
      })
      current.on('message', (data) => {
        receivedMs = performance.now()
        receive(data)
      })
      current.on('error', (error) => log.debug({ error }, 'socket of the prediction market failed'))
      current.on('close', () => {
        clearInterval(pinging)
        const wasOpen = isOpen
        isOpen = false
        if (isClosed) return
        if (wasOpen) {
          opened = Promise.withResolvers<void>()
          opened.promise.catch(() => undefined)
          onGap()
        }
        reconnect()
      })
    }, reconnect)
  }
  connect()
  return {
    isConnected: () => isOpen,
    ready: () => opened.promise,
    [Symbol.dispose]() {
      isClosed = true
      clearTimeout(reconnecting)
      socket?.terminate()
      opened.reject(new Error('the stream was closed'))
    },
  }
}
