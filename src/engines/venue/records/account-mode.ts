import { Fault } from '#kernel/contract/fault.ts'

/** The modes with separate perp and spot sides. In the old `dexAbstraction`, only other dexes use the perp side. */
const separateModes: readonly string[] = ['default', 'disabled', 'dexAbstraction']

const unifiedModes: readonly string[] = ['unifiedAccount', 'portfolioMargin']

/** Whether one balance serves both sides, for views only: an unknown mode is shown as separate balances. */
export const isUnified = (mode: string): boolean => unifiedModes.includes(mode)

/** Whether one balance serves both sides, for moving money: throws for an unknown mode, as either may be true. */
export function knownUnified(mode: string): boolean {
  if (isUnified(mode) || separateModes.includes(mode)) return isUnified(mode)
  throw new Fault(
    'upstream_changed',
    `The account has the mode ${mode} at the venue, which this gateway does not support: deposits, withdrawals and orders that need USDC from the other side are refused; closing and cancelling still work`,
    { extras: { account_mode: mode } },
  )
}
