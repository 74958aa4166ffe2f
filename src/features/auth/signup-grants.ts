import { addressKey } from '#kernel/address-key.ts'
import type { Clock } from '#kernel/clock.ts'
import { createWindowCounter } from '#kernel/window-counter.ts'

const grantsMax = 100
const windowMs = 86_400_000
const addressesMax = 20_000

/** Limits free credits per address and day at this instance, because registering a user costs nothing. */
export function signupGrants({ clock }: { clock: Clock }) {
  const grants = createWindowCounter({ keysMax: addressesMax, nowMs: () => clock.now().getTime() })
  return {
    /** Whether the next user of this address gets free credits; counts it. */
    take(ip: string): boolean {
      const key = addressKey(ip)
      if (grants.count(key) >= grantsMax) return false
      grants.add(key, windowMs)
      return true
    },
  }
}
export type SignupGrants = ReturnType<typeof signupGrants>
