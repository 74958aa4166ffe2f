import { createHmac, randomBytes } from 'node:crypto'
import { apiVersion, localSecret } from './catalogue.ts'
import { type Dial, dialRoutes, honest, lies } from './event-dial.ts'
import type { AnyObject, StripeEvent } from './objects.ts'
import { shown } from './objects.ts'
import type { Delivery, Store } from './store.ts'

/** Events and their delivery: signed, repeated until they are accepted, and disturbed as the dial says. */

/** The path at the origin of the payer's return page that gets events while no endpoint is registered. */
const defaultPath = '/webhooks/stripe'
const attemptsMax = 12
const firstRetryMs = 500
const retryMsMax = 3_600_000
const timeoutMs = 10_000
/** Within this time deliveries are collected that are then made in another order. */
const reorderMs = 400
const lieSeconds = 600
const inFlightMax = 16

export const signatureOf = (body: string, secret: string, seconds: number): string =>
  `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`

function endpointsOf(store: Store, origin: string, type: string) {
  const registered = store
    .all('webhook_endpoint')
    .filter(({ enabled_events: enabled }) => enabled.includes('*') || enabled.includes(type))
  if (store.all('webhook_endpoint').length > 0) return registered
  return [{ url: `${origin}${defaultPath}`, secret: localSecret }]
}

function messageOf({ body, secret, lie }: Delivery, seconds: number): { body: string; signature: string } {
  if (lie === 'forged')
    return { body, signature: signatureOf(body, `whsec_${randomBytes(16).toString('hex')}`, seconds) }
  if (lie === 'changed')
    return {
      body: body.replace(/"amount_paid":\d+/, '"amount_paid":1').replace(/}$/, ',"changed":true}'),
      signature: signatureOf(body, secret, seconds),
    }
  if (lie === 'old') return { body, signature: signatureOf(body, secret, seconds - lieSeconds) }
  if (lie === 'future') return { body, signature: signatureOf(body, secret, seconds + lieSeconds) }
  if (lie === 'live') {
    const live = body.replace('"livemode":false', '"livemode":true').replace('"id":"evt_', '"id":"evt_live_')
    return { body: live, signature: signatureOf(live, secret, seconds) }
  }
  return { body, signature: signatureOf(body, secret, seconds) }
}

/** Posts an event, and returns the status of the answer; 0 without one. */
const post = ({ url }: Delivery, { body, signature }: { body: string; signature: string }): Promise<number> =>
  fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
      'stripe-signature': signature,
    },
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  }).then(
    async (reply) => {
      await reply.body?.cancel()
      return reply.status
    },
    () => 0,
  )

type EventsDeps = { store: Store; nowMs: () => number }

export type Events = ReturnType<typeof createEvents>

export function createEvents({ store, nowMs }: EventsDeps) {
  const dials = new Map<string, Dial>()
  let request: StripeEvent['request'] = { id: null, idempotency_key: null }
  let inFlight = 0
  const delivered = new Map<string, { accepted: number; refused: number }>()

  const dialOf = (origin: string): Dial => dials.get(origin) ?? dials.get('') ?? honest

  const enqueue = (event: StripeEvent, origin: string): void => {
    const dial = dialOf(origin)
    const body = JSON.stringify(shown(event))
    const delayMs = dial.delaySeconds * 1_000 + (dial.reorder ? reorderMs : 0)
    for (const { url, secret } of endpointsOf(store, origin, event.type)) {
      const add = (lie?: Delivery['lie']) => {
        const delivery: Delivery = {
          url,
          secret,
          event: event.id,
          body,
          dueMs: nowMs() + delayMs,
          attempts: 0,
          ...(lie !== undefined && { lie }),
        }
        // In another order the newest is delivered first, and repetitions come between.
        if (dial.reorder) store.deliveries.unshift(delivery)
        else store.deliveries.push(delivery)
      }
      if (!dial.drop) for (let copy = 0; copy <= dial.duplicates; copy += 1) add()
      for (const lie of lies) if (dial[lie]) add(lie)
    }
    store.save()
  }

  const emit = (type: string, object: AnyObject, origin: string): void => {
    const event: StripeEvent = store.add({
      id: store.newId('event'),
      object: 'event',
      created: Math.floor(nowMs() / 1_000),
      livemode: false,
      api_version: apiVersion,
      type,
      data: { object: shown(object) },
      pending_webhooks: 1,
      request: { ...request },
    })
    enqueue(event, origin)
  }

  const countOf = (origin: string) => {
    const known = delivered.get(origin) ?? { accepted: 0, refused: 0 }
    delivered.set(origin, known)
    return known
  }

  const deliver = async (delivery: Delivery): Promise<void> => {
    delivery.attempts += 1
    const status = await post(delivery, messageOf(delivery, Math.floor(nowMs() / 1_000)))
    const isAccepted = status >= 200 && status < 300
    const count = countOf(new URL(delivery.url).origin)
    if (isAccepted) count.accepted += 1
    else count.refused += 1
    // What must be refused is sent once: an attacker does not wait.
    if (isAccepted || delivery.lie !== undefined || delivery.attempts >= attemptsMax) return
    delivery.dueMs = nowMs() + Math.min(firstRetryMs * 2 ** (delivery.attempts - 1), retryMsMax)
    store.deliveries.push(delivery)
  }

  /** Delivers what is due, a few at once. */
  const tick = (): void => {
    const now = nowMs()
    let index = 0
    while (index < store.deliveries.length && inFlight < inFlightMax) {
      const delivery = store.deliveries[index]!
      if (delivery.dueMs > now) {
        index += 1
        continue
      }
      store.deliveries.splice(index, 1)
      inFlight += 1
      void deliver(delivery).finally(() => {
        inFlight -= 1
        store.save()
      })
    }
  }

  return {
    emit,
    tick,
    /** Names the request that causes the events until the next one. */
    setRequest: (id: string | null, key: string | null) => {
      request = { id, idempotency_key: key }
    },
    routes: dialRoutes({ dials, delivered, pending: () => store.deliveries.length + inFlight }),
  }
}
