import { Fault } from '#kernel/contract/fault.ts'

/** Perp and spot are separate. In the discontinued `dexAbstraction`, only third-party perps draw on the perp side. */
const separateModes: readonly string[] = ['default', 'disabled', 'dexAbstraction']

const unifiedModes: readonly string[] = ['unifiedAccount', 'portfolioMargin']

/** Serves views only: an unknown mode is shown as separate balances. */
export const isUnified = (mode: string): boolean => unifiedModes.includes(mode)

/** Serves operations that move money: throws for an unknown mode, which does not say which side holds the USDC. */
export function knownUnified(mode: string): boolean {
  if (isUnified(mode) || separateModes.includes(mode)) return isUnified(mode)
  throw new Fault(
    'upstream_changed',
    `The account has the mode ${mode} at the venue, which this gateway does not support: deposits, withdrawals and orders that need USDC from the other side are refused; closing and cancelling still work`,
    { extras: { account_mode: mode } },
  )
}
