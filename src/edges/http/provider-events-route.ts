import type { WebDoor, WebRoute } from '#invoke/web-route.ts'

/**
 * The payment provider posts its events here. Their signature is checked before anything reads their bytes, which costs
 * so little that no sender is limited: a limit by address could keep true events away.
 */

export type ReceiveEvent = (bytes: Uint8Array, signature: string | undefined) => Promise<object>

const bodyBytesMax = 256 * 1024

export function createProviderEventDoor(receive: ReceiveEvent): WebDoor {
  const route: WebRoute = {
    path: '/webhooks/stripe',
    methods: ['POST'],
    bodyBytesMax,
    isRaw: true,
    admit: async () => undefined,
    async answer({ headers }, body) {
      const header = headers['stripe-signature']
      const bytes = body instanceof Uint8Array ? body : new Uint8Array()
      const received = await receive(bytes, typeof header === 'string' ? header : undefined)
      return new Response(JSON.stringify(received), { headers: { 'content-type': 'application/json' } })
    },
    async refuseBody(fault) {
      throw fault
    },
  }
  return { routes: [route], documents: [] }
}
