import { Fault } from '#kernel/contract/fault.ts'

/** If a rule of custody does not hold, nothing is signed. */

/** EVM addresses are case-insensitive. */
export const isSameAddress = (a: string, b: string) => a.toLowerCase() === b.toLowerCase()

export function assertRule(holdsTrue: boolean, rule: string, reason: string): asserts holdsTrue {
  if (!holdsTrue)
    throw new Fault('policy_denied', `Custody refuses to sign: ${reason}`, {
      extras: { rule: `signer_${rule}`, reason },
    })
}
