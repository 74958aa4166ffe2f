import { frameBytesMax, framesPerMessageMax, liveness, ProtocolError } from './agent-protocol.ts'

/** A connection is cut if its other side leaves this much of the written data unread. */
export const notSentBytesMax = 64 * 1_048_576

type Pinged = { ping(): void; terminate(): void }

export type Line = { text: string; bytes: number }
export type Lines = { add(line: Line): void; flush(): void }

export function toLine(frame: object): Line {
  const text = JSON.stringify(frame)
  const bytes = Buffer.byteLength(text)
  if (bytes > frameBytesMax) throw new ProtocolError(`a frame has at most ${frameBytesMax} bytes`)
  return { text, bytes }
}

/** Collects the frames of one round of the event loop and sends them as one message. */
export function createLines(send: (message: string) => void): Lines {
  let waiting: string[] = []
  let bytes = 0
  let scheduled: NodeJS.Immediate | undefined
  const flush = () => {
    clearImmediate(scheduled)
    scheduled = undefined
    if (waiting.length === 0) return
    const message = waiting.join('\n')
    waiting = []
    bytes = 0
    send(message)
  }
  return {
    flush,
    add(line) {
      if (bytes + line.bytes + 1 > frameBytesMax || waiting.length >= framesPerMessageMax) flush()
      waiting.push(line.text)
      bytes += line.bytes + 1
      scheduled ??= setImmediate(flush)
    },
  }
}

/** Ends a connection whose other side is silent. Call `received` for everything that arrives. */
export function watchLiveness(
  socket: Pinged,
  { pingEveryMs, deadAfterMs }: typeof liveness = liveness,
  nowMs: () => number = () => performance.now(),
): { received(): void } & Disposable {
  let receivedMs = nowMs()
  const timer = setInterval(() => {
    if (nowMs() - receivedMs > deadAfterMs) socket.terminate()
    else socket.ping()
  }, pingEveryMs).unref()
  return {
    received() {
      receivedMs = nowMs()
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}
