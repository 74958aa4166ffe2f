import { Fault } from '#kernel/contract/fault.ts'

/**
 * The modes in which perp and spot have separate balances. In the old mode `dexAbstraction`, third-party perp exchanges
 * use the perp balance, and spot does not.
 */
const separateModes: readonly string[] = ['default', 'disabled', 'dexAbstraction']

const unifiedModes: readonly string[] = ['unifiedAccount', 'portfolioMargin']

/** Whether perp and spot share one balance, for views only: an unknown mode is shown as separate balances. */
export const isUnified = (mode: string): boolean => unifiedModes.includes(mode)

/**
 * Whether perp and spot share one balance, for moving money. Throws for an unknown mode, because its balances may be
 * shared or separate.
 */
export function knownUnified(mode: string): boolean {
  if (isUnified(mode) || separateModes.includes(mode)) return isUnified(mode)
  throw new Fault(
    'upstream_changed',
    `The account has the mode ${mode} at the venue, which this gateway does not support: deposits, withdrawals and orders that need USDC from the other side are refused; closing and cancelling still work`,
    { extras: { account_mode: mode } },
  )
}
