import { Fault } from '#kernel/fault.ts'

/** How an account at the venue keeps its dollars, by the venue's name of its mode. */

/** Perpetuals and spot apart. The discontinued `dexAbstraction` too: only exchanges of other deployers draw on its perpetuals side. */
const separateModes: readonly string[] = ['default', 'disabled', 'dexAbstraction']

/** One balance for perpetuals and spot, on the spot side. */
const unifiedModes: readonly string[] = ['unifiedAccount', 'portfolioMargin']

/** For views: an account of a mode that is not known is shown as the venue tells of each side. */
export const isUnified = (mode: string): boolean => unifiedModes.includes(mode)

/** For what moves money: throws where the mode is not known, since nobody can say which side the dollars are on. */
export function knownUnified(mode: string): boolean {
  if (isUnified(mode) || separateModes.includes(mode)) return isUnified(mode)
  throw new Fault(
    'upstream_changed',
    `The account has the mode ${mode} at the venue, which this gateway does not know: deposits, withdrawals and orders that need dollars of the other side are refused; closing and cancelling go on`,
    { extras: { account_mode: mode } },
  )
}
