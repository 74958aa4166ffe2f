import { ProtocolError, windowMax } from '#kernel/wire/agent-protocol.ts'
import { type Line, toLine } from '#kernel/wire/agent-socket.ts'

/** The events of one run are numbered, stored until they are acknowledged, and delayed while the window is full. */

export type EventQueue = {
  /** `sent` resolves once the window has let the event through, so that a writer keeps to the pace of its reader. */
  add(event: string, data: object): { seq: number; sent: Promise<void> }
  ack(seq: number): void
  /** Sends the events after `afterSeq` to a connection; returns false if these events are no longer known. */
  attach(send: (line: Line) => void, afterSeq: number): boolean
  detach(): void
  /**
   * Resolves `sent` of all events, also of later ones, so that an answerer that has to end does not wait for a reader.
   */
  release(): void
  ackedSeq(): number
}

type Event = { seq: number; line: Line; sent: PromiseWithResolvers<void> }

/** The most events and bytes that a run holds, against an answerer that does not wait for `sent`. */
const heldMax = { events: 12_000, bytes: 4 * 1_048_576 }

export function createEventQueue(runId: string): EventQueue {
  let lastSeq = 0
  let ackedSeq = 0
  let sentSeq = 0
  let heldBytes = 0
  let openBytes = 0
  let held: Event[] = []
  let send: ((line: Line) => void) | undefined
  let isReleased = false

  const pump = () => {
    while (send && sentSeq < lastSeq) {
      if (sentSeq - ackedSeq >= windowMax.events || openBytes >= windowMax.bytes) return
      const event = held[sentSeq - ackedSeq]!
      sentSeq = event.seq
      openBytes += event.line.bytes
      send(event.line)
      event.sent.resolve()
    }
  }
  return {
    ackedSeq: () => ackedSeq,
    add(event, data) {
      const line = toLine({ type: 'event', run_id: runId, seq: lastSeq + 1, event, data })
      if (held.length >= heldMax.events || heldBytes + line.bytes > heldMax.bytes)
        throw new Error('the answerer writes more than is read')
      lastSeq += 1
      heldBytes += line.bytes
      const sent = Promise.withResolvers<void>()
      if (isReleased) sent.resolve()
      held.push({ seq: lastSeq, line, sent })
      pump()
      return { seq: lastSeq, sent: sent.promise }
    },
    ack(seq) {
      if (seq > sentSeq) throw new ProtocolError('an event was acknowledged before it was sent')
      if (seq <= ackedSeq) return
      const count = seq - ackedSeq
      for (const { line } of held.slice(0, count)) {
        heldBytes -= line.bytes
        openBytes -= line.bytes
      }
      held = held.slice(count)
      ackedSeq = seq
      pump()
    },
    attach(sendLine, afterSeq) {
      if (afterSeq < ackedSeq || afterSeq > sentSeq) return false
      send = sendLine
      for (const { line } of held.slice(afterSeq - ackedSeq, sentSeq - ackedSeq)) sendLine(line)
      pump()
      return true
    },
    detach() {
      send = undefined
    },
    release() {
      isReleased = true
      for (const { sent } of held) sent.resolve()
    },
  }
}
