import type { RateLimits } from '#invoke/rate-limits.ts'
import type { WebDoor, WebRequest, WebRoute } from '#invoke/web-route.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'

/**
 * The payment provider posts its events here. The time of a signature is checked before the body is read, and the
 * signature before anything reads the bytes. An address that forges signatures is refused before its bodies are read.
 */

export type ProviderEvents = {
  /** Throws unless the header has a signature of about now. */
  assertTimely(signature: string | undefined): void
  receive(bytes: Uint8Array, signature: string | undefined): Promise<object>
}

const bodyBytesMax = 256 * 1024

const signatureOf = ({ headers }: WebRequest): string | undefined => {
  const header = headers['stripe-signature']
  return typeof header === 'string' ? header : undefined
}

export function createProviderEventDoor(events: ProviderEvents, limits: RateLimits): WebDoor {
  const route: WebRoute<string> = {
    path: '/webhooks/stripe',
    methods: ['POST'],
    bodyBytesMax,
    isRaw: true,
    async admit(request) {
      events.assertTimely(signatureOf(request))
      // Wrong credentials of other calls from this address, which may be that of a proxy, do not count here.
      const key = `events:${addressKey(request.address)}`
      // No point is taken here, so that any number of true events is accepted.
      const { fault } = await limits.consume('refused', key, 0)
      if (fault) throw fault
      return key
    },
    async answer(request, body, key) {
      const bytes = body instanceof Uint8Array ? body : new Uint8Array()
      try {
        const received = await events.receive(bytes, signatureOf(request))
        return new Response(JSON.stringify(received), { headers: { 'content-type': 'application/json' } })
      } catch (error) {
        if (error instanceof Fault && error.code === 'bad_request') await limits.consume('refused', key)
        throw error
      }
    },
    async refuseBody(fault) {
      throw fault
    },
  }
  return { routes: [route as WebRoute], documents: [] }
}
