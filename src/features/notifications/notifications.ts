import type { EventLog, StoredEvent } from '#durable/events/event-log.ts'
import { Fault, type Issue, invalid } from '#kernel/contract/fault.ts'
import { alternatives, nearest } from '#kernel/contract/nearest-names.ts'
import { implement, type StreamItem } from '#kernel/contract/operation.ts'
import { contract } from './contract.ts'
import { type EventType, eventTypes, type NotificationEvent } from './event-types.ts'

type NotificationsDeps = { events: EventLog }
type Item = StreamItem<NotificationEvent>

const replayedEvents = 50n

/** Reads the types of a filter; rejects unknown types, because a misspelt one would never match an event. */
function typesOf(text: string | undefined): { types?: EventType[] } {
  if (text === undefined) return {}
  const types = text.split(',').map((name) => {
    const type = eventTypes.find((each) => each === name.trim())
    if (type !== undefined) return type
    const given = name.trim().slice(0, 64)
    const meant = nearest(given, eventTypes)
    const hint = meant.length > 0 ? ` Did you mean '${alternatives(meant)}'?` : ''
    const sentence = `'${given}' is not an event type.${hint} Valid types: ${eventTypes.join(', ')}`
    throw invalid('types', 'unknown_event_type', sentence)
  })
  return { types }
}

/** The stored JSON has the shape that the type of its event declares. */
const toEvent = (data: StoredEvent | { from: string; to: string }) => data as unknown as NotificationEvent

/** Reads the cursor of a client; a client that has seen no event yet sends an empty id. */
function cursorOf(lastEventId: string | undefined): string | undefined {
  if (lastEventId === undefined || lastEventId === '') return undefined
  if (/^\d{1,18}$/.test(lastEventId)) return lastEventId
  const msg =
    'Input should be the id of an event of this stream, such as 42; without it the last 50 events come first'
  const issue: Issue = { location: 'header', path: ['Last-Event-ID'], msg, type: 'string_pattern_mismatch' }
  throw new Fault('validation', msg, { issues: [issue] })
}

const item = (event: StoredEvent): Item => ({ id: event.id, event: event.type, data: toEvent(event) })

/** An item that is sent once if the cursor is older than the retained log: the client must read its state again. */
const reset = (from: bigint, to: bigint): Item => ({
  id: String(to),
  event: 'reset',
  data: toEvent({ from: String(from), to: String(to) }),
})

export const notificationFacts = (retentionDays: number) => ({
  stream: true,
  rest: true,
  webhooks: true,
  retention_days: retentionDays,
})

export const createNotifications = ({ events }: NotificationsDeps) =>
  implement(contract, {
    async *stream({ after, types }, caller, { lastEventId, signal }) {
      const filter = typesOf(types)
      const { first, last } = await events.bounds(caller.userId)
      const asked = cursorOf(lastEventId) ?? after
      let seq = asked === undefined ? last - replayedEvents : BigInt(asked)
      // A cursor beyond the end comes from another database; to keep it would hide all events up to that number.
      if (seq > last) seq = last
      if (seq < 0n) seq = 0n
      if (asked !== undefined && seq + 1n < first) {
        yield reset(seq + 1n, first - 1n)
        seq = first - 1n
      }
      for await (const page of events.subscribe(caller.userId, seq, { ...filter, signal }))
        for (const event of page) yield item(event)
    },

    list: async ({ after = '0', skip = 0, limit = 50, types, task_id }, caller) => {
      const filter = { ...typesOf(types), taskId: task_id }
      const page = await events.page(caller.userId, BigInt(after), { limit, skip }, filter)
      return {
        events: page.events.map(toEvent),
        total_count: page.total,
        limit,
        skip,
        next_after: String(page.nextAfter),
      }
    },
  })
