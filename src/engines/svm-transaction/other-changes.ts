import type { WalletChange } from '#upstreams/solana/payments.ts'
import type { HeldUnits } from './held-units.ts'

/** Whether other transactions alone changed a wallet since its balance was read for a signature. */

type Changes = {
  /** The balances that were read at about the time of the signature. */
  before: readonly HeldUnits[]
  held: readonly HeldUnits[]
  /** The units of each token that the signed transaction takes. */
  spent: ReadonlyMap<string, bigint>
  /** The changes are in the order of their slots. */
  changes: readonly WalletChange[]
  /** The balance was read at this slot or before it, so which of the earlier changes it contained is unknown. */
  readBy: bigint
}

/** Whether the changes explain all differences without the signed transaction, and cannot explain them with it. */
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

/** Returns the sum of all changes, and the sums that remain if the balance already contained the first ones. */
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
