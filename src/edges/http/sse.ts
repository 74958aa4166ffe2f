import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { StreamItem } from '#kernel/operation.ts'

export type SseSettings = {
  /** Proxies cut a silent connection after a minute or less. */
  heartbeatMs: number
  /** Maximum bytes in this process for a slow reader. */
  bufferBytesMax: number
  /** How long a reader may read nothing while the buffer is full. */
  stallMs: number
}
export const sseDefaults: SseSettings = { heartbeatMs: 15_000, bufferBytesMax: 64 * 1024, stallMs: 10_000 }

const reconnectMs = 3_000
const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

const oneLine = (text: string): string => text.replace(/[^\P{Cc}\t]/gu, '')

export function frameOf(item: StreamItem): string {
  if ('comment' in item) return `: ${oneLine(item.comment)}\n\n`
  const id = item.id === undefined ? '' : `id: ${oneLine(item.id)}\n`
  const event = item.event === undefined ? '' : `event: ${oneLine(item.event)}\n`
  return `${id}${event}data: ${JSON.stringify(item.data ?? null)}\n\n`
}

export type EventStream = {
  /** False once the client has left. */
  write(item: StreamItem): Promise<boolean>
  /** Repeats the last event id, so that a client resumes where it was cut. */
  finish(): void
  /** Resolves when the stream has ended, for any reason. */
  ended: Promise<void>
}

/**
 * Takes the connection over. Fastify's hooks no longer run from here on, so the headers that they set are copied. A
 * full buffer makes the producer wait; a reader that stays stuck is cut and resumes with its last event id.
 */
export function openEventStream(reply: FastifyReply, settings: SseSettings): EventStream {
  const { raw } = reply
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) raw.setHeader(name, value)
  }
  raw.writeHead(200, headers)
  raw.socket?.setNoDelay(true)
  raw.write(`retry: ${reconnectMs}\n\n`)
  let lastId: string | undefined
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  raw.once('close', () => resolve())
  raw.once('error', () => resolve())
  if (raw.destroyed) resolve()
  const heartbeat = setInterval(() => {
    if (!raw.writableNeedDrain) raw.write(': ping\n\n')
  }, settings.heartbeatMs)
  void ended.then(() => clearInterval(heartbeat))
  const isOpen = () => !raw.writableEnded && !raw.destroyed

  return {
    ended,
    async write(item) {
      if (!isOpen()) return false
      corkForTick(raw)
      raw.write(frameOf(item))
      if (!('comment' in item) && item.id !== undefined) lastId = oneLine(item.id)
      if (raw.writableLength > settings.bufferBytesMax && !(await drained(raw, settings.stallMs))) {
        raw.destroy()
      }
      return isOpen()
    },
    finish() {
      if (!isOpen()) return
      if (lastId !== undefined) raw.write(`id: ${lastId}\n\n`)
      raw.end()
      resolve()
    },
  }
}

/** Concurrent events are written together. */
function corkForTick({ socket }: ServerResponse): void {
  if (!socket || socket.writableCorked > 0) return
  socket.cork()
  process.nextTick(() => socket.uncork())
}

/** Whether the reader took the buffered bytes, before it left and before the timeout. */
async function drained(raw: ServerResponse, stallMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, stallMs, false)
  const onDrain = () => resolve(true)
  const onClose = () => resolve(false)
  raw.once('drain', onDrain)
  raw.once('close', onClose)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    raw.off('drain', onDrain)
    raw.off('close', onClose)
  }
}
