import { batchByArrival } from '#kernel/async/arrival-batches.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import type { ChatEvent, ChatEventData, EventName } from './events.ts'
import * as store from './store.ts'

/** This module stores the events of the turns that this instance runs. Nobody sees an event before it is stored. */

/** Thrown when another instance has claimed the turn, so that this one must write nothing more. */
export class ClaimLost extends Error {}

/** The result of a call, or a recommendation, that the same commit stores together with an event. */
export type Beside = { call?: store.StoredResult; recommendation?: JsonObject }
export type AppendEvents = (append: store.Append) => Promise<boolean>

const turnsPerStatement = 32
/** The events of a turn are limited because an instance that takes over a turn reads all of them. */
export const eventsPerTurnMax = 10_000
const eventsPerCommit = 100
/** The maximum length of an event that several pieces of the answer are merged into. */
const sharedCharactersMax = 2_000

/** One statement stores the events that all turns wrote while the previous statement was running. */
export const createAppend = (db: Queryable, isUnavailable: (error: unknown) => boolean): AppendEvents =>
  batchByArrival({
    async run(appends: readonly store.Append[]) {
      const written = await store.append(db, appends)
      return appends.map(({ chat_id }) => written.has(chat_id))
    },
    sizeMax: turnsPerStatement,
    keyOf: ({ chat_id }) => chat_id,
    ownerOf: ({ chat_id }) => chat_id,
    isFinal: isUnavailable,
    isBlocked: () => false,
  })

export const sized = (event: ChatEvent): ChatEvent & { bytes: number } => ({
  ...event,
  bytes: Buffer.byteLength(JSON.stringify(event.data)),
})

type WriterDeps = {
  append: AppendEvents
  chatId: string
  version: number
  seq: number
  onStored: (events: readonly ChatEvent[]) => void
}
type Waiting = { event?: ChatEvent; beside: Beside; stored: PromiseWithResolvers<void> }

export type EventWriter = {
  /** Resolves once the event is stored; events are stored in the order of the calls. */
  add<Name extends EventName>(event: Name, data: ChatEventData[Name], beside?: Beside): Promise<void>
  /** Stores the result of a call without an event, in the order of the calls of this writer. */
  store(call: store.StoredResult): Promise<void>
  flush(): Promise<void>
  /** Closes the writer: an event or result that is added later is dropped. */
  close(): void
}

function joined({ event, beside }: Waiting, next: string): string | undefined {
  if (event?.event !== 'chunk' || beside.call || beside.recommendation) return undefined
  const text = `${String(event.data.text)}${next}`
  return text.length <= sharedCharactersMax ? text : undefined
}

const eventsOf = (batch: readonly Waiting[]): ChatEvent[] => batch.flatMap(({ event }) => event ?? [])

/**
 * Events that arrive during a commit form the next commit, without a timer. Consecutive pieces of the answer that
 * wait are merged into one event, because no client has seen the first of them yet.
 */
export function createEventWriter({ append, chatId, version, seq: from, onStored }: WriterDeps): EventWriter {
  let seq = from
  let waiting: Waiting[] = []
  let writing: Promise<void> | undefined
  let isClosed = false
  let failure: unknown

  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, eventsPerCommit)
      waiting = waiting.slice(eventsPerCommit)
      try {
        const isWritten = await append({
          chat_id: chatId,
          version,
          events: eventsOf(batch).map(sized),
          calls: batch.flatMap(({ beside: { call } }) => (call ? [call] : [])),
          recommendations: batch.flatMap(({ beside: { recommendation } }) =>
            recommendation ? [recommendation] : [],
          ),
        })
        if (!isWritten) throw new ClaimLost('another instance runs the turn')
      } catch (error) {
        // The failed events left a gap before any later event, so the writer accepts no more.
        isClosed = true
        failure = error
        for (const { stored } of [...batch, ...waiting]) stored.reject(error)
        waiting = []
        return
      }
      onStored(eventsOf(batch))
      for (const { stored } of batch) stored.resolve()
    }
  }
  const write = (next: Omit<Waiting, 'stored'>): Promise<void> => {
    const stored = Promise.withResolvers<void>()
    // If nobody awaits this promise, the next flush reports the failure.
    stored.promise.catch(() => undefined)
    waiting.push({ ...next, stored })
    writing ??= writeAll().finally(() => {
      writing = undefined
    })
    return stored.promise
  }
  // An answerer that still writes after the end of its turn waits here for ever.
  const never = (): Promise<void> => new Promise(() => undefined)
  return {
    add(event, data, beside = {}) {
      if (failure !== undefined) return Promise.reject(failure)
      if (isClosed) return never()
      const last = waiting.at(-1)
      if (last?.event && event === 'chunk') {
        const text = joined(last, (data as ChatEventData['chunk']).text)
        if (text !== undefined) {
          last.event.data = { text }
          return last.stored.promise
        }
      }
      if (seq >= eventsPerTurnMax)
        return Promise.reject(new Fault('conflict', `An answer has at most ${eventsPerTurnMax} events`))
      seq += 1
      return write({ event: { seq, event, data: data as JsonObject }, beside })
    },
    store(call) {
      if (failure !== undefined) return Promise.reject(failure)
      return isClosed ? never() : write({ beside: { call } })
    },
    async flush() {
      while (writing) await writing
      if (failure !== undefined) throw failure
    },
    close() {
      isClosed = true
    },
  }
}
