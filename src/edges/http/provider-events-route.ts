import type { RateLimits } from '#invoke/rate-limits.ts'
import type { WebDoor, WebRequest, WebRoute } from '#invoke/web-route.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'

/**
 * The payment provider posts its events here. The time of a signature is checked before the body is read, and the
 * signature before anything reads the bytes. An address that forges signatures, or leaves bodies unfinished, is refused
 * before its bodies are read.
 */

export type ProviderEvents = {
  /** Throws unless the header has a signature of about now. */
  assertTimely(signature: string | undefined): void
  receive(bytes: Uint8Array, signature: string | undefined): Promise<object>
}

const bodyBytesMax = 256 * 1024
/** Bodies that arrive at one moment, so that senders who never complete theirs hold 16 MiB at most. */
const bodiesMax = 64
const bodiesPerAddressMax = 24
const bodyMsMax = 5_000
/** A body that never arrives holds a place for seconds, so it costs as many points as this many wrong signatures. */
const unfinishedPoints = 25

const signatureOf = ({ headers }: WebRequest): string | undefined => {
  const header = headers['stripe-signature']
  return typeof header === 'string' ? header : undefined
}

/** `arrive` says that the body is whole: who leaves after that has left nothing unfinished. */
type Place = { release: () => void; arrive: () => void }
type Admitted = Place & { key: string }

/** Counts the bodies that arrive. A place is free again once its body is judged, or its sender has left. */
function createPlaces(onUnfinished: (key: string) => void) {
  const taken = new Map<string, number>()
  let total = 0
  return (key: string, { signal }: WebRequest): Place => {
    const own = taken.get(key) ?? 0
    if (own >= bodiesPerAddressMax || total >= bodiesMax)
      throw new Fault('unavailable', 'Too many events arrive at once: send this one again', {
        extras: { retry_after: 1 },
      })
    total += 1
    taken.set(key, own + 1)
    let isReleased = false
    let hasArrived = false
    const release = () => {
      if (isReleased) return
      isReleased = true
      total -= 1
      const left = (taken.get(key) ?? 1) - 1
      if (left === 0) taken.delete(key)
      else taken.set(key, left)
    }
    const leave = () => {
      if (!isReleased && !hasArrived) onUnfinished(key)
      release()
    }
    signal.addEventListener('abort', leave, { once: true })
    return {
      release,
      arrive() {
        hasArrived = true
      },
    }
  }
}

export function createProviderEventDoor(events: ProviderEvents, limits: RateLimits): WebDoor {
  const refuse = async (key: string, points?: number): Promise<void> =>
    void (await limits.consume('refused', key, points))
  // Nobody waits for this count, and the store of the points reports its own failures.
  const takePlace = createPlaces((key) => void refuse(key, unfinishedPoints).catch(() => undefined))
  const route: WebRoute<Admitted> = {
    path: '/webhooks/stripe',
    methods: ['POST'],
    bodyBytesMax,
    bodyMsMax,
    isRaw: true,
    async admit(request) {
      events.assertTimely(signatureOf(request))
      // Wrong credentials of other calls from this address, which may be that of a proxy, do not count here.
      const key = `events:${addressKey(request.address)}`
      // No point is taken here, so that any number of true events is accepted.
      const { fault } = await limits.consume('refused', key, 0)
      if (fault) throw fault
      return { key, ...takePlace(key, request) }
    },
    async answer(request, body, { key, release, arrive }) {
      arrive()
      const bytes = body instanceof Uint8Array ? body : new Uint8Array()
      try {
        const received = await events.receive(bytes, signatureOf(request))
        return new Response(JSON.stringify(received), { headers: { 'content-type': 'application/json' } })
      } catch (error) {
        if (error instanceof Fault && error.code === 'bad_request') await refuse(key)
        throw error
      } finally {
        release()
      }
    },
    async refuseBody(fault, { key, release }) {
      release()
      await refuse(key)
      throw fault
    },
  }
  return { routes: [route as WebRoute], documents: [] }
}
