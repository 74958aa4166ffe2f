import { exitGrant } from '#kernel/task/policy-action.ts'
import type { AccountRef, AdmittedSpend, LedgerToken, ReadBalance } from '#kernel/task/task.ts'

/** Spends of tasks whose limits are not what a test is about. */

type Held = { account: AccountRef; amountUnits: bigint; token?: LedgerToken }
/** The reading is repeated by `reread`; without it, a reading that is out of date stays so. */
type Seen = ReadBalance & { reread?: () => Promise<ReadBalance> }

export const unlimited = (chainId = 'test') => exitGrant(chainId)

export function testSpend(held: Held, seen?: Seen): AdmittedSpend {
  const { owner, asset } = held.account
  const action = { userId: owner, operation: 'spend', chainId: 'test', tokens: [asset], recipients: [] }
  return {
    ...held,
    action: { ...action, usdMicros: 0n, exit: true },
    check: async () => unlimited(),
    ...(seen && { seen: { reread: async () => seen, ...seen } }),
  }
}
