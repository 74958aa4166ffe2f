/** Weight of a request in the per-minute budget of an address. */
const lightTypes = new Set([
  'l2Book',
  'allMids',
  'clearinghouseState',
  'orderStatus',
  'spotClearinghouseState',
  'exchangeStatus',
])

export const infoWeight = (type: string): number => (lightTypes.has(type) ? 2 : type === 'userRole' ? 60 : 20)

export const exchangeWeight = (action: unknown): number => {
  const lists =
    typeof action === 'object' && action !== null ? Object.values(action).filter(Array.isArray) : []
  return 1 + Math.floor((lists[0]?.length ?? 0) / 40)
}

const windowMs = 60_000

export type RateBudget = {
  /** False when the minute's budget is used up; then nothing is taken. */
  take: (address: string, weight: number, nowMs: number) => boolean
  limit: (perMinute: number) => void
}

/** 0 means no limit: the whole world uses one loopback address. */
export const createRateBudget = (perMinute: number): RateBudget => {
  let maximum = perMinute
  const used = new Map<string, { fromMs: number; weight: number }>()
  return {
    take: (address, weight, nowMs) => {
      if (maximum === 0) return true
      const known = used.get(address)
      const current = known && nowMs - known.fromMs < windowMs ? known : { fromMs: nowMs, weight: 0 }
      if (current.weight + weight > maximum) return false
      current.weight += weight
      used.set(address, current)
      return true
    },
    limit: (next) => {
      maximum = next
      used.clear()
    },
  }
}
