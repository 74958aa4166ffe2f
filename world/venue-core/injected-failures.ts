import { nextRandom, type RandomState } from './random.ts'

/** Failure of a request. `dropReply` is after the commit, the others before it. */
export type InjectedFailure = {
  effect: 'latency' | 'reset' | 'status' | 'dropReply' | 'wsDrop'
  latencyMs?: number
  status?: number
  /** Limits the failure to an endpoint, and to a type of action or request. */
  endpoint?: string
  type?: string
  user?: string
  /** Maximum count, and the probability each time. */
  count?: number
  rate?: number
}

type ArmedFailure = { id: number; fault: InjectedFailure; left: number; random: RandomState; struck: number }

export type InjectedFailures = {
  add: (fault: InjectedFailure, seed: number) => number
  remove: (id: number | undefined) => void
  list: () => { id: number; fault: InjectedFailure; left: number | null; struck: number }[]
  /** The failures that apply to this request; each application is counted. */
  takeMatching: (endpoint: string, type: string) => InjectedFailure[]
}

export const createInjectedFailures = (): InjectedFailures => {
  const armed = new Map<number, ArmedFailure>()
  let last = 0
  const isHit = (item: ArmedFailure, endpoint: string, type: string): boolean => {
    const { fault } = item
    if (
      item.left <= 0 ||
      (fault.endpoint && fault.endpoint !== endpoint) ||
      (fault.type && fault.type !== type)
    )
      return false
    if (fault.rate !== undefined && nextRandom(item.random) >= fault.rate) return false
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
    takeMatching: (endpoint, type) =>
      [...armed.values()].filter((item) => isHit(item, endpoint, type)).map(({ fault }) => fault),
  }
}
