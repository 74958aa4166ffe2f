import type { EventLog } from '#durable/events/event-log.ts'
import type { Transact } from '#durable/transactions.ts'
import type { VenueAccount } from '#engines/venue/records/account-store.ts'
import { phaseOf } from '#engines/venue/records/bracket.ts'
import { baseLeg } from '#engines/venue/records/ingest.ts'
import { venueName } from '#engines/venue/records/order-store.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import type { Hyperliquid, OrderState } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { OrderEvent } from '#upstreams/hyperliquid/stream.ts'

/** Emits one event for each order that ends without a fill, from the stream or from a later poll. */

type OrderClosureDeps = {
  db: Queryable
  transact: Transact
  venue: Pick<Hyperliquid, 'order' | 'openOrders'>
  events: Pick<EventLog, 'add' | 'notify'>
  clock: Clock
}
type OrderClosure = Pick<OrderEvent, 'orderId' | 'status' | 'atMs'> & { cloid: string }
type OwnOrder = { cloid: string; task_id: string; leg: string; symbol: string }

/** Orders are polled from this age on; before, the stream or the task itself reports their end. */
const minAgeMs = 10_000
/** From this age on every action has expired, so an order that the venue does not know cannot appear any more. */
const absentAfterMs = 3_600_000
const pollBatch = 10
const absentStatus = 'absent'
const isClosed = (status: string): boolean =>
  ['filled', 'cancelled', 'rejected'].includes(phaseOf(status) ?? '')

export function createOrderClosures({ db, transact, venue, events, clock }: OrderClosureDeps) {
  const recordClosures = async (userId: string, closures: readonly OrderClosure[]): Promise<void> => {
    const hasEvents = await transact(async (tx) => {
      const rows = await query<OwnOrder>(
        tx,
        `update venue_order o set status = e.status, ended_at = e.at
         from unnest($2::text[], $3::text[], $4::timestamptz[]) as e (cloid, status, at)
         where o.cloid = e.cloid and o.user_id = $1 and o.ended_at is null
         returning o.cloid, o.task_id, o.leg, o.symbol`,
        [
          userId,
          closures.map(({ cloid }) => cloid),
          closures.map(({ status }) => status),
          closures.map(({ atMs }) => new Date(atMs)),
        ],
      )
      const list = closures.flatMap((each) => {
        const ownOrder = rows.find(({ cloid }) => cloid === each.cloid)
        return ownOrder ? eventsOf(ownOrder, each) : []
      })
      await events.add(tx, userId, list)
      return list.length > 0
    })
    if (hasEvents) events.notify(userId)
  }

  /** Whether an order that is not in the list of open orders has a status that the gateway does not know. */
  const isUnknownClosure = async (account: string, { order, status }: OrderState): Promise<boolean> =>
    phaseOf(status) === undefined &&
    !(await venue.openOrders(account)).some(({ orderId }) => orderId === order.orderId)

  return {
    async onStreamed(orderEvents: readonly OrderEvent[]): Promise<void> {
      const closures = orderEvents.flatMap((each) =>
        each.cloid && isClosed(each.status) ? [{ ...each, cloid: each.cloid }] : [],
      )
      if (closures.length === 0) return
      const rows = await query<{ cloid: string; user_id: string }>(
        db,
        'select cloid, user_id from venue_order where cloid = any($1::text[]) and ended_at is null',
        [closures.map(({ cloid }) => cloid)],
      )
      const users = Map.groupBy(rows, ({ user_id }) => user_id)
      for (const [userId, own] of users)
        await recordClosures(
          userId,
          own.flatMap(({ cloid }) => closures.find((each) => each.cloid === cloid) ?? []),
        )
    },

    /** Polls a random sample of an account's orders whose end is unknown. */
    async poll({ user_id, account }: VenueAccount): Promise<void> {
      const now = clock.now()
      const rows = await query<{ cloid: string; at: Date }>(
        db,
        `select cloid, at from venue_order where user_id = $1 and venue = $2 and ended_at is null and at < $3
         order by random() limit ${pollBatch}`,
        [user_id, venueName, later(now, -minAgeMs)],
      )
      for (const { cloid, at } of rows) {
        const found = await venue.order(account, cloid)
        if (found && (isClosed(found.status) || (await isUnknownClosure(account, found))))
          await recordClosures(user_id, [
            { cloid, orderId: found.order.orderId, status: found.status, atMs: found.atMs },
          ])
        else if (!found && now.getTime() - at.getTime() > absentAfterMs)
          await recordClosures(user_id, [{ cloid, orderId: 0, status: absentStatus, atMs: now.getTime() }])
      }
    },
  }
}

function eventsOf(
  { task_id, leg, symbol }: OwnOrder,
  { cloid, orderId, status, atMs }: OrderClosure,
): NewEvent[] {
  const phase = phaseOf(status)
  if (phase === 'filled' || status === absentStatus) return []
  const type = phase === 'rejected' ? 'order.rejected' : 'order.cancelled'
  const data = {
    venue: venueName,
    asset: symbol,
    order_id: String(orderId),
    cloid,
    task_id,
    leg: baseLeg(leg),
    reason: status,
    at: new Date(atMs).toISOString(),
  }
  return [{ type, taskId: task_id, subject: { kind: 'order', id: String(orderId) }, data }]
}
