import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { createCounter } from '#kernel/metrics.ts'
import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { ProviderEvent } from '#upstreams/stripe/wire.ts'
import { daySeconds } from './store.ts'

/** An event of the provider is a hint to read an object again; what it says is not believed. */

type ReceiveDeps = {
  transact: <T>(run: (tx: Tx) => Promise<T>) => Promise<T>
  providerClock: Clock
  clock: Clock
  log: Log
  /** Whether the key of this gateway is for real money; events of the other mode are ignored. */
  isLive: boolean
  /** Serves what is due now, on all instances. */
  announce: () => void
}
export type EventResult = 'read' | 'repeated' | 'foreign' | 'other_mode'

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function createEventReceiver(deps: ReceiveDeps) {
  const counted = createCounter('portico_provider_events_total', 'Events of the payment provider, by result')
  const receive = async (event: ProviderEvent): Promise<EventResult> => {
    const { log, transact, announce, isLive } = deps
    if (event.isLive !== isLive) {
      log.warn({ event: event.id }, 'event of the payment provider ignored: it is of the other mode')
      return 'other_mode'
    }
    const result = await transact((tx) => record(deps, tx, event))
    if (result === 'read') announce()
    return result
  }
  return {
    metrics: async () => [counted.read()],
    countRejected: () => counted.add({ result: 'rejected' }),
    async receive(event: ProviderEvent): Promise<EventResult> {
      const result = await receive(event)
      counted.add({ result })
      return result
    },
  }
}

async function record(
  { clock, providerClock }: ReceiveDeps,
  tx: Tx,
  event: ProviderEvent,
): Promise<EventResult> {
  const added = await query(
    tx,
    'insert into plan_event (id, type, received_at) values ($1, $2, $3) on conflict do nothing returning id',
    [event.id, event.type, clock.now()],
  )
  if (added.length === 0) return 'repeated'
  const now = providerClock.now()
  const hinted = await query(
    tx,
    `update plan_watch set next_at = least(next_at, $3) where id = $1
       or id in (select subscription_id from plan_invoice where payment_intent = $2) returning id`,
    [event.objectId ?? null, event.paymentIntentId ?? null, now],
  )
  if (hinted.length > 0) return 'read'
  // An event may come before the session is read, and names the user since the checkout of this gateway.
  const isSubscription = event.objectId?.startsWith('sub_') ?? false
  if (!isSubscription || !uuidForm.test(event.userId ?? '')) return 'foreign'
  const begun = await query(
    tx,
    `insert into plan_watch (id, user_id, next_at, every_seconds)
     select $1, id, $3, $4 from app_user where id = $2::uuid on conflict do nothing returning id`,
    [event.objectId, event.userId, now, daySeconds],
  )
  return begun.length > 0 ? 'read' : 'foreign'
}
