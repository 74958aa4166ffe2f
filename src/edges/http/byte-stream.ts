import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'

export type StreamSettings = {
  /** Proxies cut a silent connection after a minute or less. */
  heartbeatMs: number
  /** Maximum bytes in this process for a slow reader. */
  bufferBytesMax: number
  /** How long a reader may take nothing of what waits for it. */
  stallMs: number
}
export const streamDefaults: StreamSettings = {
  heartbeatMs: 15_000,
  bufferBytesMax: 64 * 1024,
  stallMs: 10_000,
}

export type ByteStream = {
  /** Resolves once the reader has room for more; false once it has left or was cut. */
  write(bytes: string | Uint8Array): Promise<boolean>
  finish(last?: string): void
  /** Resolves when the stream has ended, for any reason. */
  ended: Promise<void>
}

/**
 * Every stream of the server is written here, so that one rule holds for all. A full buffer makes the producer wait, and a
 * reader that takes nothing of what waits for it is cut. Takes the connection over: Fastify's hooks no longer run from
 * here on, so the headers that they set are copied.
 */
export function openByteStream(
  reply: FastifyReply,
  { heartbeatMs, bufferBytesMax, stallMs }: StreamSettings,
): ByteStream {
  const { raw } = reply
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) raw.setHeader(name, value)
  // Proxies would hold events back.
  raw.writeHead(reply.statusCode, { 'x-accel-buffering': 'no' })
  raw.socket?.setNoDelay(true)
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  raw.once('close', () => resolve())
  raw.once('error', () => resolve())
  if (raw.destroyed) resolve()
  const isOpen = () => !raw.writableEnded && !raw.destroyed
  let isWriting = false
  /** When the reader last took something, or had nothing to take. */
  let takenMs = performance.now()
  const onTaken = (error?: Error | null) => {
    if (!error) takenMs = performance.now()
  }
  const heartbeat = setInterval(() => {
    // Where something waits, a write would only hide from the server's timeout that nothing is read.
    if (!isWriting && raw.writableLength === 0) raw.write(': ping\n\n')
  }, heartbeatMs)
  void ended.then(() => clearInterval(heartbeat))

  const writePiece = async (piece: string | Uint8Array): Promise<boolean> => {
    if (raw.writableLength === 0) takenMs = performance.now()
    const isStuck = performance.now() - takenMs > stallMs
    if (!isStuck) {
      corkForTick(raw)
      raw.write(piece, onTaken)
    }
    if (isStuck || (raw.writableLength > bufferBytesMax && !(await drained(raw, stallMs)))) raw.destroy()
    return isOpen()
  }
  return {
    ended,
    async write(bytes) {
      isWriting = true
      try {
        for (const piece of piecesOf(bytes, bufferBytesMax))
          if (!isOpen() || !(await writePiece(piece))) return false
        return isOpen()
      } finally {
        isWriting = false
      }
    },
    finish(last) {
      if (!isOpen()) return
      if (last !== undefined) raw.write(last)
      raw.end()
      resolve()
    },
  }
}

/** A long frame counts as many short ones, of which a slow reader takes one after the other. */
function piecesOf(bytes: string | Uint8Array, max: number): Iterable<string | Uint8Array> {
  if (bytes.length <= max / 3) return [bytes]
  return slicesOf(typeof bytes === 'string' ? Buffer.from(bytes) : bytes, max)
}

function* slicesOf(bytes: Uint8Array, max: number): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += max) yield bytes.subarray(at, at + max)
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
