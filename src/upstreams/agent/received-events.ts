import { ProtocolError, windowMax } from '#kernel/wire/agent-protocol.ts'

/** Follows the events of a run: the last one that arrived, and the one up to which all are handled. */

export type Received = {
  /** Records that an event arrived, and returns false for an event that arrived before. */
  take(seq: number, bytes: number): boolean
  /** Records that an event is handled. Returns the number up to which all events are handled, if that has grown. */
  done(seq: number): number | undefined
  last(): number
}

export function createReceived(): Received {
  let last = 0
  let doneSeq = 0
  let openBytes = 0
  const open = new Map<number, { bytes: number; isDone: boolean }>()
  return {
    last: () => last,
    take(seq, bytes) {
      if (seq <= last) return false
      if (seq !== last + 1) throw new ProtocolError('an event is missing')
      if (open.size >= windowMax.events || openBytes >= windowMax.bytes)
        throw new ProtocolError('more events than were acknowledged')
      last = seq
      openBytes += bytes
      open.set(seq, { bytes, isDone: false })
      return true
    },
    done(seq) {
      const event = open.get(seq)
      if (event) event.isDone = true
      const before = doneSeq
      for (let next = open.get(doneSeq + 1); next?.isDone; next = open.get(doneSeq + 1)) {
        doneSeq += 1
        openBytes -= next.bytes
        open.delete(doneSeq)
      }
      return doneSeq > before ? doneSeq : undefined
    },
  }
}
