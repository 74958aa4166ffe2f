import { HttpError } from './http.ts'
import type { RealismControl } from './realism.ts'

/** Two token buckets per signer. They may go negative by what was only known afterwards, such as a cancel-all. */
export type Buckets = {
  /** Throws 429 where the bucket has too little; returns the headers of the reply. */
  take: (kind: BucketKind, signer: string, cost: number) => Record<string, string>
  /** Takes without asking. */
  charge: (kind: BucketKind, signer: string, cost: number) => void
}

export type BucketKind = 'orders' | 'cancels'

type Bucket = { tokens: number; atMs: number }

const burstFactor = 1.5
const signersMax = 10_000
export const tier = 'standard'

const unlimited = { orders: 40, cancels: 80 } as const

export const createBuckets = (realism: RealismControl, nowMs: () => number): Buckets => {
  const buckets = new Map<string, Bucket>()

  const perSecond = (kind: BucketKind): number => {
    const { ordersPerSecond, cancelsPerSecond } = realism.current()
    return kind === 'orders' ? ordersPerSecond : cancelsPerSecond
  }
  const filled = (kind: BucketKind, signer: string): Bucket => {
    const rate = perSecond(kind) || unlimited[kind]
    const capacity = rate * burstFactor
    if (buckets.size > signersMax) buckets.clear()
    const bucket = buckets.get(`${kind} ${signer}`) ?? { tokens: capacity, atMs: nowMs() }
    buckets.set(`${kind} ${signer}`, bucket)
    const passed = Math.max(0, nowMs() - bucket.atMs) / 1_000
    bucket.tokens = Math.min(capacity, bucket.tokens + passed * rate)
    bucket.atMs = nowMs()
    return bucket
  }
  const charge = (kind: BucketKind, signer: string, cost: number): void => {
    filled(kind, signer).tokens -= cost
  }
  return {
    charge,
    take: (kind, signer, cost) => {
      const bucket = filled(kind, signer)
      const rate = perSecond(kind)
      const wait = Math.max(0, (cost - bucket.tokens) / (rate || unlimited[kind]))
      const isRefused = rate > 0 && wait > 0
      if (!isRefused) bucket.tokens -= cost
      const isOdd = realism.current().limitHeaders === 'odd'
      const headers = {
        'Poly-RateLimit-Remaining': isOdd ? '17.5' : String(Math.floor(bucket.tokens)),
        'Poly-RateLimit-Reset': isOdd ? '999999999999999' : String(Math.ceil(nowMs() / 1_000 + wait)),
        'Poly-RateLimit-Tier': tier,
      }
      if (!isRefused) return headers
      throw new HttpError(
        429,
        'Too Many Requests',
        {},
        { ...headers, 'Retry-After': String(Math.ceil(wait)) },
      )
    },
  }
}
