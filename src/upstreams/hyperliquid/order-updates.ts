import { createLru } from '#kernel/async/create-lru.ts'
import type { Fill } from './parse-replies.ts'

/** Recent stream updates per order, which save requests to the venue. */

export type OrderUpdate = {
  fills: readonly Fill[]
  /** The open and the original size of the order, while the order is in the book. */
  left?: { size: string; origSize: string }
  /** The venue's id of an order that was read by its client id, while it is in the book. */
  orderId?: number
  /** True if the fills come from a list of the venue, so that they are complete. */
  isList?: boolean
}
export type OrderUpdates = {
  fills(fills: readonly Fill[]): void
  order(orderId: number, left: OrderUpdate['left'], cloid?: string | null): void
  /** Calls `read` at each update of an order, and returns its first defined result; undefined after `withinMs`. */
  waitFor<T>(
    id: number | string,
    read: (update: OrderUpdate) => T | undefined,
    withinMs: number,
  ): Promise<T | undefined>
}

type Known = {
  fills: Map<number, Fill>
  left?: OrderUpdate['left']
  orderId?: number | undefined
  waiting: Set<() => void>
}

const ordersMax = 4_000

export function createOrderUpdates(): OrderUpdates {
  const known = createLru<number | string, Known>(ordersMax)

  const entryOf = (id: number | string): Known => {
    const found = known.get(id)
    if (found) return found
    const made: Known = { fills: new Map(), waiting: new Set() }
    known.set(id, made)
    return made
  }
  const notify = ({ waiting }: Known) => {
    for (const evaluate of [...waiting]) evaluate()
  }

  return {
    fills(fills) {
      for (const fill of fills) entryOf(fill.orderId).fills.set(fill.tradeId, fill)
      for (const orderId of new Set(fills.map((fill) => fill.orderId))) notify(entryOf(orderId))
    },
    order(orderId, left, cloid) {
      const order = entryOf(orderId)
      order.left = left
      notify(order)
      if (!cloid) return
      const named = entryOf(cloid)
      named.orderId = left && orderId
      notify(named)
    },
    async waitFor(id, read, withinMs) {
      const order = entryOf(id)
      const evaluate = () => {
        const { fills, left, orderId } = order
        return read({
          fills: [...fills.values()],
          ...(left && { left }),
          ...(orderId !== undefined && { orderId }),
        })
      }
      const found = evaluate()
      if (found !== undefined) return found
      return new Promise((resolve) => {
        const end = (answer: ReturnType<typeof evaluate>) => {
          clearTimeout(timer)
          order.waiting.delete(reevaluate)
          resolve(answer)
        }
        const reevaluate = () => {
          const answer = evaluate()
          if (answer !== undefined) end(answer)
        }
        const timer = setTimeout(() => end(undefined), withinMs)
        order.waiting.add(reevaluate)
      })
    },
  }
}

const recentMs = 60_000

export function recentOf(fills: readonly Fill[]): Fill[] {
  const newestMs = Math.max(...fills.map(({ atMs }) => atMs))
  return fills.filter(({ atMs }) => atMs > newestMs - recentMs)
}
