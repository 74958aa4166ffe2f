/** What a request costs of an address's budget of a minute. */
const light = new Set([
  'l2Book',
  'allMids',
  'clearinghouseState',
  'orderStatus',
  'spotClearinghouseState',
  'exchangeStatus',
])

export const infoWeight = (type: string): number => (light.has(type) ? 2 : type === 'userRole' ? 60 : 20)

export const exchangeWeight = (action: unknown): number => {
  const lists =
    typeof action === 'object' && action !== null ? Object.values(action).filter(Array.isArray) : []
  return 1 + Math.floor((lists[0]?.length ?? 0) / 40)
}

const windowMs = 60_000

export type Budget = {
  /** False when the minute's budget is used up; then nothing is taken. */
  take: (who: string, weight: number, nowMs: number) => boolean
  limit: (perMinute: number) => void
}

/** 0 means no limit: the whole world talks from one loopback address. */
export const createBudget = (perMinute: number): Budget => {
  let maximum = perMinute
  const used = new Map<string, { fromMs: number; weight: number }>()
  return {
    take: (who, weight, nowMs) => {
      if (maximum === 0) return true
      const known = used.get(who)
      const current = known && nowMs - known.fromMs < windowMs ? known : { fromMs: nowMs, weight: 0 }
      if (current.weight + weight > maximum) return false
      current.weight += weight
      used.set(who, current)
      return true
    },
    limit: (next) => {
      maximum = next
      used.clear()
    },
  }
}
