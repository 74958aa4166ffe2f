import { next, type RandomState } from '#world/venue-core/random.ts'

/** What goes wrong with a request. `dropReply` is after the commit, the others before it. */
export type Fault = {
  effect: 'latency' | 'reset' | 'status' | 'dropReply' | 'wsDrop'
  latencyMs?: number
  status?: number
  /** Only these: the door, and the type of the action or of the question. */
  door?: 'exchange' | 'info' | 'ws'
  type?: string
  user?: string
  /** How often at most, and with which chance each time. */
  count?: number
  rate?: number
}

type Armed = { id: number; fault: Fault; left: number; random: RandomState; struck: number }

export type Faults = {
  add: (fault: Fault, seed: number) => number
  remove: (id: number | undefined) => void
  list: () => { id: number; fault: Fault; left: number | null; struck: number }[]
  /** The faults that strike this request; each strike is counted. */
  strike: (door: NonNullable<Fault['door']>, type: string) => Fault[]
}

export const createFaults = (): Faults => {
  const armed = new Map<number, Armed>()
  let last = 0
  const strikes = (item: Armed, door: string, type: string): boolean => {
    const { fault } = item
    if (item.left <= 0 || (fault.door && fault.door !== door) || (fault.type && fault.type !== type))
      return false
    if (fault.rate !== undefined && next(item.random) >= fault.rate) return false
    item.left -= 1
    item.struck += 1
    return true
  }
  return {
    add: (fault, seed) => {
      last += 1
      const left = fault.count ?? Number.POSITIVE_INFINITY
      armed.set(last, { id: last, fault, left, random: { at: seed | 0 }, struck: 0 })
      return last
    },
    remove: (id) => {
      if (id === undefined) armed.clear()
      else armed.delete(id)
    },
    list: () =>
      [...armed.values()].map(({ id, fault, left, struck }) => ({
        id,
        fault,
        left: Number.isFinite(left) ? left : null,
        struck,
      })),
    strike: (door, type) =>
      [...armed.values()].filter((item) => strikes(item, door, type)).map(({ fault }) => fault),
  }
}
