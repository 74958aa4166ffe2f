import type { Events, StoredEvent } from '#durable/events.ts'
import type { StreamItem } from '#kernel/operation.ts'
import { fulfil } from '#kernel/operation.ts'
import { contract, type NotificationEvent } from './contract.ts'

type Needs = { events: Events }
type Item = StreamItem<NotificationEvent>

const replayed = 50n

const typesOf = (text: string | undefined) =>
  text === undefined
    ? {}
    : {
        types: text
          .split(',')
          .map((type) => type.trim())
          .filter(Boolean),
      }

const item = (event: StoredEvent): Item => ({
  id: event.id,
  event: event.type,
  data: event as NotificationEvent,
})

/** Told once, when the cursor is older than the log: what lies between is gone, so the client reads its state anew. */
const reset = (from: bigint, to: bigint): Item => ({
  id: String(to),
  event: 'reset',
  data: { from: String(from), to: String(to) } as unknown as NotificationEvent,
})

export const notifications = ({ events }: Needs) =>
  fulfil(contract, {
    async *stream({ after, types }, caller, { lastEventId, signal }) {
      const { first, last } = await events.bounds(caller.userId)
      const asked = lastEventId !== undefined && /^\d{1,18}$/.test(lastEventId) ? lastEventId : after
      let seq = asked === undefined ? last - replayed : BigInt(asked)
      // A cursor from the future belongs to another database; holding it would hide every event until then.
      if (seq > last) seq = last
      if (seq < 0n) seq = 0n
      if (asked !== undefined && seq + 1n < first) {
        yield reset(seq + 1n, first - 1n)
        seq = first - 1n
      }
      for await (const page of events.follow(caller.userId, seq, { ...typesOf(types), signal }))
        for (const event of page) yield item(event)
    },

    list: async ({ after = '0', offset = 0, limit = 50, types, task_id }, caller) => {
      const filter = { ...typesOf(types), taskId: task_id }
      const rows = await events.after(caller.userId, BigInt(after), offset + limit, filter)
      const page = rows.slice(offset)
      return {
        events: page as NotificationEvent[],
        total_count: await events.count(caller.userId, BigInt(after), filter),
        limit,
        offset,
        next_after: page.at(-1)?.id ?? after,
      }
    },
  })
