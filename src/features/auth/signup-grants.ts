import { LRUCache } from 'lru-cache'
import { addressKey } from '#kernel/address-key.ts'
import type { Clock } from '#kernel/clock.ts'

const grantsMax = 100
const windowMs = 86_400_000
const addressesMax = 20_000

/** Limits free credits per address and day at this instance, because registering a user costs nothing. */
export function signupGrants({ clock }: { clock: Clock }) {
  const windows = new LRUCache<string, { grants: number; endsAtMs: number }>({ max: addressesMax })
  return {
    /** Whether the next user of this address gets free credits; counts it. */
    take(ip: string): boolean {
      const key = addressKey(ip)
      const nowMs = clock.now().getTime()
      const known = windows.get(key)
      const window = known && known.endsAtMs > nowMs ? known : { grants: 0, endsAtMs: nowMs + windowMs }
      if (window.grants >= grantsMax) return false
      window.grants += 1
      windows.set(key, window)
      return true
    },
  }
}
export type SignupGrants = ReturnType<typeof signupGrants>
