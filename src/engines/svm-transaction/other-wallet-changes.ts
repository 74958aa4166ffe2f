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
  /** The slot by which the balance was read, so it is unknown which of the earlier changes the balance contained. */
  readBy: bigint
}

/** Whether the changes explain all differences of the balances, and could not if the signed transaction landed. */
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

/** Returns the possible sums of the changes: of all, or of those left if the balance contained the first ones. */
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
