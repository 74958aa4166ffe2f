import type { Fill } from './reading.ts'

/** What the streams told lately of single orders, for who would otherwise ask the venue for it. */

export type OrderHeard = {
  fills: readonly Fill[]
  /** How much of the order is left, while it stands in the book. */
  left?: { size: string; origSize: string }
}
export type Heard = {
  fills(fills: readonly Fill[]): void
  order(orderId: number, left: OrderHeard['left']): void
  /** What `read` makes of it as soon as it makes anything of it; undefined when the time is over. */
  when<T>(
    orderId: number,
    read: (heard: OrderHeard) => T | undefined,
    withinMs: number,
  ): Promise<T | undefined>
}

type Known = { fills: Map<number, Fill>; left?: OrderHeard['left']; waiting: Set<() => void> }

const ordersMost = 2_000

export function ordersHeard(): Heard {
  const known = new Map<number, Known>()

  const of = (orderId: number): Known => {
    const found = known.get(orderId)
    if (found) return found
    const made: Known = { fills: new Map(), waiting: new Set() }
    const oldest = known.size >= ordersMost ? known.keys().next().value : undefined
    if (oldest !== undefined) known.delete(oldest)
    known.set(orderId, made)
    return made
  }
  const ring = ({ waiting }: Known) => {
    for (const look of [...waiting]) look()
  }

  return {
    fills(fills) {
      for (const fill of fills) of(fill.orderId).fills.set(fill.tradeId, fill)
      for (const orderId of new Set(fills.map((fill) => fill.orderId))) ring(of(orderId))
    },
    order(orderId, left) {
      const order = of(orderId)
      order.left = left
      ring(order)
    },
    async when(orderId, read, withinMs) {
      const order = of(orderId)
      const look = () => read({ fills: [...order.fills.values()], ...(order.left && { left: order.left }) })
      const found = look()
      if (found !== undefined) return found
      return new Promise((resolve) => {
        const end = (answer: ReturnType<typeof look>) => {
          clearTimeout(timer)
          order.waiting.delete(again)
          resolve(answer)
        }
        const again = () => {
          const answer = look()
          if (answer !== undefined) end(answer)
        }
        const timer = setTimeout(() => end(undefined), withinMs)
        order.waiting.add(again)
      })
    },
  }
}
