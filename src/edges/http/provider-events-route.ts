import type { RateLimits } from '#invoke/rate-limits.ts'
import type { WebDoor, WebRequest, WebRoute } from '#invoke/web-route.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'

/** The payment provider posts its events here. Their signature is checked before anything reads their bytes. */

export type ReceiveEvent = (bytes: Uint8Array, signature: string | undefined) => Promise<object>

const bodyBytesMax = 256 * 1024

const json = (status: number, body: object): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })

export function createProviderEventDoor(receive: ReceiveEvent, limits: RateLimits): WebDoor {
  const route: WebRoute<string> = {
    path: '/webhooks/stripe',
    methods: ['POST'],
    bodyBytesMax,
    isRaw: true,
    async admit({ address }: WebRequest) {
      const key = addressKey(address)
      // Nothing is counted here, so that any number of true events is accepted.
      const { fault } = await limits.consume('refused', key, 0)
      if (fault) throw fault
      return key
    },
    async answer({ headers }, body, key) {
      const header = headers['stripe-signature']
      const bytes = body instanceof Uint8Array ? body : new Uint8Array()
      try {
        return json(200, await receive(bytes, typeof header === 'string' ? header : undefined))
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
