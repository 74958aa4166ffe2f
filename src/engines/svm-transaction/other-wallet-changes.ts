import type { WalletChange } from '#upstreams/solana/incoming-transfers.ts'
import type { HeldUnits } from './wallet-balances.ts'

/** Whether other transactions alone changed a wallet since its balance was read for a signature. */

type Changes = {
  /** The wallet's balances that were read at about the time of the signature. */
  before: readonly HeldUnits[]
  held: readonly HeldUnits[]
  /** The units of each token that the signed transaction takes. */
  spent: ReadonlyMap<string, bigint>
  /** The wallet's changes by other transactions, in the order of their slots. */
  changes: readonly WalletChange[]
  /** The balance was read at this slot or an earlier one, so it may or may not contain the changes up to this slot. */
  readBy: bigint
}

/**
 * Whether the changes by other transactions explain all differences of the balances, and would not explain them if the
 * signed transaction had landed too.
 */
export function isMovedByOthers({ before, held, spent, changes, readBy }: Changes): boolean {
  const differences = before.map(({ token, units }) => {
    const now = held.find((each) => each.token === token)?.units ?? '0'
    const possible = possibleSums(token, changes, readBy)
    const difference = BigInt(now) - BigInt(units)
    const spentUnits = spent.get(token) ?? 0n
    return {
      isWithout: possible.has(difference),
      isWith: possible.has(difference + spentUnits),
    }
  })
  return differences.every(({ isWithout }) => isWithout) && differences.some(({ isWith }) => !isWith)
}

/**
 * Returns the possible sums of a token's changes since its balance was read: the balance may already have contained the
 * first changes.
 */
function possibleSums(token: string, changes: readonly WalletChange[], readBy: bigint): Set<bigint> {
  const unitsOf = ({ units }: WalletChange) => units.get(token) ?? 0n
  let rest = changes.reduce((sum, each) => sum + unitsOf(each), 0n)
  const sums = new Set([rest])
  for (const each of changes) {
    if (each.slot > readBy) break
    rest -= unitsOf(each)
    sums.add(rest)
  }
  return sums
}
