import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'

export type StreamSettings = {
  /** How often a silent stream sends a comment: proxies cut a silent connection after a minute or less. */
  heartbeatMs: number
  /** The most bytes that wait in this process for a slow reader. */
  bufferBytesMax: number
  /** How long a reader may read nothing while bytes wait for it. */
  stallMs: number
}
export const streamDefaults: StreamSettings = {
  heartbeatMs: 15_000,
  bufferBytesMax: 64 * 1024,
  stallMs: 10_000,
}

export type ByteStream = {
  /** Resolves with true once the reader has room for more, and with false once it has left or was cut off. */
  write(bytes: string | Uint8Array): Promise<boolean>
  finish(last?: string): void
  ended: Promise<void>
}

/**
 * Every stream of the server is written here, so that one rule applies to all. A full buffer makes the producer
 * wait, and a reader that reads nothing although bytes wait for it is cut off. The stream takes over the
 * connection: Fastify's hooks no longer run from here on, so the headers that they set are copied.
 */
export function openByteStream(
  reply: FastifyReply,
  { heartbeatMs, bufferBytesMax, stallMs }: StreamSettings,
): ByteStream {
  const { raw } = reply
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) raw.setHeader(name, value)
  // Without this header, `x-accel-buffering: no`, a proxy would hold events back.
  raw.writeHead(reply.statusCode, { 'x-accel-buffering': 'no' })
  raw.socket?.setNoDelay(true)
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  raw.once('close', () => resolve())
  raw.once('error', () => resolve())
  if (raw.destroyed) resolve()
  const isOpen = () => !raw.writableEnded && !raw.destroyed
  let isWriting = false
  /** When the reader last read something, or had nothing to read. */
  let takenMs = performance.now()
  const onTaken = (error?: Error | null) => {
    if (!error) takenMs = performance.now()
  }
  const heartbeat = setInterval(() => {
    // No heartbeat is sent while bytes are unread: each write restarts the server's socket timeout, which would then
    // never end the connection of a client that reads nothing.
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

/** Splits a long frame, so that a slow reader counts as reading while it reads the pieces. */
function piecesOf(bytes: string | Uint8Array, max: number): Iterable<string | Uint8Array> {
  if (bytes.length <= max / 3) return [bytes]
  return slicesOf(typeof bytes === 'string' ? Buffer.from(bytes) : bytes, max)
}

function* slicesOf(bytes: Uint8Array, max: number): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += max) yield bytes.subarray(at, at + max)
}

function corkForTick({ socket }: ServerResponse): void {
  if (!socket || socket.writableCorked > 0) return
  socket.cork()
  process.nextTick(() => socket.uncork())
}

/**
 * Resolves with true once the reader has read the buffered bytes, and with false if it left or the timeout passed
 * before that.
 */
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
