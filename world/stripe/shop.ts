import type { AnyObject } from './objects.ts'
import type { Store } from './store.ts'

/** What every part of the provider's account needs: its objects, its clock, and where its events go. */

/** Records that something happened to an object; its event goes to the endpoints of the customer. */
export type Emit = (type: string, object: AnyObject, origin: string) => void
type ShopDeps = { store: Store; nowMs: () => number; emit: Emit; hostUrl: () => string }
export type Shop = {
  store: Store
  emit: Emit
  hostUrl: () => string
  seconds: () => number
  /** The fields that every new object has. */
  base: () => { created: number; livemode: false }
  originOf: (customer: string) => string
}

export function createShop({ store, nowMs, emit, hostUrl }: ShopDeps): Shop {
  const seconds = () => Math.floor(nowMs() / 1_000)
  return {
    store,
    emit,
    hostUrl,
    seconds,
    base: () => ({ created: seconds(), livemode: false }),
    originOf: (customer) => store.get('customer', customer).origin,
  }
}
