import type { Fill } from './reading.ts'

/** What the streams told lately of single orders, for who would otherwise ask the venue for it. */

export type OrderHeard = {
  fills: readonly Fill[]
  /** How much of the order is left, while it stands in the book. */
  left?: { size: string; origSize: string }
  /** The venue's id of an order that was asked for by its client id, while it stands in the book. */
  orderId?: number
  /** The fills are a list of the venue and hold all that it shows of the order. */
  isList?: boolean
}
export type Heard = {
  fills(fills: readonly Fill[]): void
  order(orderId: number, left: OrderHeard['left'], cloid?: string | null): void
  /** What `read` makes of it as soon as it makes anything of it; undefined when the time is over. */
  when<T>(
    id: number | string,
    read: (heard: OrderHeard) => T | undefined,
    withinMs: number,
  ): Promise<T | undefined>
}

type Known = {
  fills: Map<number, Fill>
  left?: OrderHeard['left']
  orderId?: number | undefined
  waiting: Set<() => void>
}

const ordersMost = 4_000

export function ordersHeard(): Heard {
  const known = new Map<number | string, Known>()

  const of = (id: number | string): Known => {
    const found = known.get(id)
    if (found) return found
    const made: Known = { fills: new Map(), waiting: new Set() }
    const oldest = known.size >= ordersMost ? known.keys().next().value : undefined
    if (oldest !== undefined) known.delete(oldest)
    known.set(id, made)
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
    order(orderId, left, cloid) {
      const order = of(orderId)
      order.left = left
      ring(order)
      if (!cloid) return
      const named = of(cloid)
      named.orderId = left && orderId
      ring(named)
    },
    async when(id, read, withinMs) {
      const order = of(id)
      const look = () => {
        const { fills, left, orderId } = order
        return read({
          fills: [...fills.values()],
          ...(left && { left }),
          ...(orderId !== undefined && { orderId }),
        })
      }
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

const recentMs = 60_000

/** Of a list of fills, those that happened with the newest one. */
export function recentOf(fills: readonly Fill[]): Fill[] {
  const newestMs = Math.max(...fills.map(({ atMs }) => atMs))
  return fills.filter(({ atMs }) => atMs > newestMs - recentMs)
}
