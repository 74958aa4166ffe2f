import type { Chain, Commitment } from './chain.ts'
import type { LandedTransaction } from './execution.ts'
import { apiVersion } from './methods-cluster.ts'
import type { Params } from './params.ts'
import { invalidParams, RpcError } from './rpc-error.ts'

/** The subscriptions of one client, and the events that wait until they reach the requested commitment. */

const subscriptionsMax = 1_000
const rootDepth = 32

type Notify = (result: unknown) => void
type Reactions = {
  landed?: (landed: LandedTransaction) => void
  tick?: () => void
}
type Subscription = Reactions & { method: string; notify: Notify }
type Delayed = { slot: number; commitment: Commitment; send: () => void; id: number }

export type SendNotification = (method: string, id: number, result: unknown) => void
export type SubscriptionList = ReturnType<typeof createSubscriptionList>

export const inContext = (slot: number, value: unknown) => ({ context: { apiVersion, slot }, value })

export const createSubscriptionList = (chain: Chain, sendNotification: SendNotification) => {
  const open = new Map<number, Subscription>()
  let delayed: Delayed[] = []
  let lastId = 0
  let lastSlot = chain.slotAt('processed')

  const deliver = (): void => {
    const due = delayed.filter(({ slot, commitment }) => slot <= chain.slotAt(commitment))
    if (due.length === 0) return
    delayed = delayed.filter((each) => !due.includes(each))
    for (const { id, send } of due) if (open.has(id)) send()
  }

  return {
    add(method: string, make: (id: number, notify: Notify) => Reactions): number {
      if (open.size >= subscriptionsMax)
        throw new RpcError(-32000, 'Too many subscriptions on this connection')
      lastId += 1
      const id = lastId
      const notify: Notify = (result) => sendNotification(method, id, result)
      open.set(id, { method, notify, ...make(id, notify) })
      return id
    },
    deliverAt(id: number, slot: number, commitment: Commitment, send: () => void): void {
      delayed.push({ id, slot, commitment, send })
      deliver()
    },
    isWaiting: (id: number): boolean => delayed.some((each) => each.id === id),
    /** The method that ends a subscription of any kind. */
    unsubscribe(params: Params): boolean {
      const [id] = params
      if (typeof id !== 'number' || !open.delete(id)) throw invalidParams('Invalid subscription id.')
      delayed = delayed.filter((each) => each.id !== id)
      return true
    },
    /** Ends a subscription as a node does by itself. */
    end: (id: number): void => void open.delete(id),
    announce(landed: LandedTransaction): void {
      for (const each of [...open.values()]) each.landed?.(landed)
    },
    /** Advances time: slots, roots, and events that have reached their commitment. */
    tick(): void {
      const slot = chain.slotAt('processed')
      for (let at = Math.max(lastSlot + 1, slot - rootDepth); at <= slot; at++)
        for (const { method, notify } of open.values()) {
          if (method === 'slotNotification') notify({ parent: at - 1, root: at - rootDepth, slot: at })
          if (method === 'rootNotification') notify(at - rootDepth)
        }
      lastSlot = slot
      for (const each of [...open.values()]) each.tick?.()
      deliver()
    },
    clear(): void {
      open.clear()
      delayed = []
    },
  }
}
