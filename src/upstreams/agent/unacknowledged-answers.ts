import { type GatewayFrame, openRequestsMax, ProtocolError } from '#kernel/wire/agent-protocol.ts'
import type { Answer } from './service-requests.ts'

/** Keeps the answers to the requests of a run until the service acknowledges them. */

type Frame = Extract<GatewayFrame, { type: 'tool_response' }>
export type Answers = {
  open(seq: number): void
  answer(seq: number, found: Answer & { thrown?: boolean }): void
  received(seq: number): void
  resend(): void
}

const requestsMax = 2_000
const tooLarge = { ok: false, thrown: true, code: 'body_too_large', message: 'The result is too large' }

export function createAnswers(runId: string, send: (frame: Frame) => void): Answers {
  const known = new Map<number, Frame | undefined>()
  let count = 0
  return {
    open(seq) {
      count += 1
      if (known.size >= openRequestsMax || count > requestsMax) throw new ProtocolError('too many requests')
      known.set(seq, undefined)
    },
    answer(seq, found) {
      if (!known.has(seq)) return
      const store = (answer: typeof found) => {
        const frame: Frame = { type: 'tool_response', run_id: runId, seq, ...answer }
        known.set(seq, frame)
        send(frame)
      }
      try {
        store(found)
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        store(tooLarge)
      }
    },
    received: (seq) => void known.delete(seq),
    resend() {
      for (const frame of known.values()) if (frame) send(frame)
    },
  }
}
