import { createWindowCounter, type WindowCounter } from '#kernel/async/window-counter.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { type BudgetOwner, budgetSpent, type Fault } from '#kernel/contract/fault.ts'
import type { RateClass } from '#kernel/contract/operation.ts'

/** `refused` counts failed credentials per address, so that guessing is slow. */
export type LimitName = RateClass | 'refused'
export type Limit = { points: number; windowSeconds: number }
/** With zero points the class is not limited. */
export type Limits = Readonly<Record<LimitName, Limit>>

type PerMinute = Record<Exclude<RateClass, 'image'>, number> & { image?: number; refused?: number }

export function limitsPerMinute(points: PerMinute): Limits {
  const limit = (count: number): Limit => ({ points: count, windowSeconds: 60 })
  const { auth, read, money, exit, stream, image = money, refused = auth } = points
  return {
    auth: limit(auth),
    read: limit(read),
    money: limit(money),
    exit: limit(exit),
    stream: limit(stream),
    image: limit(image),
    refused: limit(refused),
  }
}

export const defaultLimits = limitsPerMinute({
  auth: 300,
  read: 6_000,
  money: 1_200,
  exit: 6_000,
  stream: 120,
  image: 120,
})

export type WindowCount = { spent: number; resetMs: number }
/** The place where points are counted: the memory of one process, or a store that several instances share. */
export type PointStore = {
  add(name: LimitName, key: string, limit: Limit, points: number): WindowCount | Promise<WindowCount>
}

const keysMax = 100_000

export function memoryPointStore(nowMs = monotonicMs): PointStore {
  const counters = new Map<LimitName, WindowCounter>()
  const counterOf = (name: LimitName): WindowCounter => {
    const known = counters.get(name)
    if (known) return known
    const made = createWindowCounter({ keysMax, nowMs })
    counters.set(name, made)
    return made
  }
  return {
    add(name, key, { windowSeconds }, points) {
      const { count, endsAtMs } = counterOf(name).add(key, windowSeconds * 1_000, points)
      return { spent: count, resetMs: endsAtMs - nowMs() }
    },
  }
}

export type BudgetState = {
  name: LimitName
  points: number
  windowSeconds: number
  left: number
  resetSeconds: number
}
const unlimited: RateLimitResult = {}
export type RateLimitResult = { budget?: BudgetState; fault?: Fault }

function ownerOf(key: string): BudgetOwner {
  if (key.startsWith('backend:')) return 'backend'
  return /^(?:user|pages):/.test(key) ? 'user' : 'address'
}

export function rateLimits(limits: Limits, store: PointStore) {
  const resultOf = (
    name: LimitName,
    key: string,
    { points, windowSeconds }: Limit,
    { spent, resetMs }: WindowCount,
  ): RateLimitResult => {
    const seconds = Math.max(1, Math.ceil(resetMs / 1_000))
    const budget = { name, points, windowSeconds, left: Math.max(0, points - spent), resetSeconds: seconds }
    if (spent <= points) return { budget }
    const owner = ownerOf(key)
    const sentence =
      `The budget ${name} of this ${owner}, ${points} in ${windowSeconds} s, is used up; ` +
      `it is full again in ${seconds} s`
    const fault = budgetSpent('rate_limited', sentence, { budget: name, owner, retryAfterSeconds: seconds })
    return { budget, fault }
  }
  return {
    consume(name: LimitName, key: string, points = 1): RateLimitResult | Promise<RateLimitResult> {
      const limit = limits[name]
      if (limit.points <= 0) return unlimited
      const counted = store.add(name, key, limit, points)
      return counted instanceof Promise
        ? counted.then((count) => resultOf(name, key, limit, count))
        : resultOf(name, key, limit, counted)
    },
  }
}
export type RateLimits = ReturnType<typeof rateLimits>
