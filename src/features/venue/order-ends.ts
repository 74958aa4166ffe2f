import type { Events } from '#durable/events.ts'
import type { Transact } from '#durable/transactions.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { NewEvent } from '#kernel/task.ts'
import { type Queryable, send } from '#store/query.ts'
import type { Hyperliquid, OrderState } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { OrderNews } from '#upstreams/hyperliquid/stream.ts'
import type { VenueAccount } from './account-store.ts'
import { phaseOf } from './bracket.ts'
import { legOf } from './ingest.ts'
import { venueName } from './store.ts'

/** Orders that end without a fill are told to their owner, once: by the stream, or by a question some time later. */

type Needs = {
  on: Queryable
  transact: Transact
  venue: Pick<Hyperliquid, 'order' | 'openOrders'>
  events: Pick<Events, 'add' | 'told'>
  clock: Clock
}
type End = Pick<OrderNews, 'orderId' | 'status' | 'atMs'> & { cloid: string }
type Ours = { cloid: string; task_id: string; leg: string; symbol: string }

/** By then the stream, or the task itself, has heard of it. */
const youngMs = 10_000
/** By then every action has expired: what the venue does not know will never come. */
const lostMs = 3_600_000
const atOnce = 10
const absentStatus = 'absent'
const isOver = (status: string): boolean =>
  ['filled', 'cancelled', 'rejected'].includes(phaseOf(status) ?? '')

export function orderEnds({ on, transact, venue, events, clock }: Needs) {
  const end = async (userId: string, ends: readonly End[]): Promise<void> => {
    const told = await transact(async (tx) => {
      const rows = await send<Ours>(
        tx,
        `update venue_order o set status = e.status, ended_at = e.at
         from unnest($2::text[], $3::text[], $4::timestamptz[]) as e (cloid, status, at)
         where o.cloid = e.cloid and o.user_id = $1 and o.ended_at is null
         returning o.cloid, o.task_id, o.leg, o.symbol`,
        [
          userId,
          ends.map(({ cloid }) => cloid),
          ends.map(({ status }) => status),
          ends.map(({ atMs }) => new Date(atMs)),
        ],
      )
      const list = ends.flatMap((each) => {
        const ours = rows.find(({ cloid }) => cloid === each.cloid)
        return ours ? eventsOf(ours, each) : []
      })
      await events.add(tx, userId, list)
      return list.length > 0
    })
    if (told) events.told(userId)
  }

  /** By a word that is not known, of an order that is open no more. */
  const isStrangeEnd = async (account: string, { order, status }: OrderState): Promise<boolean> =>
    phaseOf(status) === undefined &&
    !(await venue.openOrders(account)).some(({ orderId }) => orderId === order.orderId)

  return {
    async heard(news: readonly OrderNews[]): Promise<void> {
      const ends = news.flatMap((each) =>
        each.cloid && isOver(each.status) ? [{ ...each, cloid: each.cloid }] : [],
      )
      if (ends.length === 0) return
      const rows = await send<{ cloid: string; user_id: string }>(
        on,
        'select cloid, user_id from venue_order where cloid = any($1::text[]) and ended_at is null',
        [ends.map(({ cloid }) => cloid)],
      )
      const users = Map.groupBy(rows, ({ user_id }) => user_id)
      for (const [userId, own] of users)
        await end(
          userId,
          own.flatMap(({ cloid }) => ends.find((each) => each.cloid === cloid) ?? []),
        )
    },

    /** Some of the orders of which no end is known; the next look asks for others. */
    async ask({ user_id, account }: VenueAccount): Promise<void> {
      const now = clock.now()
      const rows = await send<{ cloid: string; at: Date }>(
        on,
        `select cloid, at from venue_order where user_id = $1 and venue = $2 and ended_at is null and at < $3
         order by random() limit ${atOnce}`,
        [user_id, venueName, later(now, -youngMs)],
      )
      for (const { cloid, at } of rows) {
        const found = await venue.order(account, cloid)
        if (found && (isOver(found.status) || (await isStrangeEnd(account, found))))
          await end(user_id, [
            { cloid, orderId: found.order.orderId, status: found.status, atMs: found.atMs },
          ])
        else if (!found && now.getTime() - at.getTime() > lostMs)
          await end(user_id, [{ cloid, orderId: 0, status: absentStatus, atMs: now.getTime() }])
      }
    },
  }
}

function eventsOf({ task_id, leg, symbol }: Ours, { cloid, orderId, status, atMs }: End): NewEvent[] {
  const phase = phaseOf(status)
  if (phase === 'filled' || status === absentStatus) return []
  const type = phase === 'rejected' ? 'order.rejected' : 'order.cancelled'
  const data = {
    venue: venueName,
    asset: symbol,
    order_id: String(orderId),
    cloid,
    task_id,
    leg: legOf(leg),
    reason: status,
    at: new Date(atMs).toISOString(),
  }
  return [{ type, taskId: task_id, subject: { kind: 'order', id: String(orderId) }, data }]
}
