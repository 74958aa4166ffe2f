import { mulDiv } from '#kernel/money/money.ts'

/** Shares of one outcome with their cost. What leaves takes cost at the average of what is held at its time. */

export type HeldShares = {
  units: bigint
  /** With fees. */
  costUnits: bigint
  /** What sales and redemptions have brought beyond their cost. */
  realizedUnits: bigint
}
export const noShares: HeldShares = { units: 0n, costUnits: 0n, realizedUnits: 0n }

/** More shares may leave than were bought here, because shares can arrive from elsewhere; those have no cost. */
export function afterRelease(held: HeldShares, goneUnits: bigint, proceedsUnits: bigint): HeldShares {
  const { units, costUnits, realizedUnits } = held
  const ownUnits = goneUnits < units ? goneUnits : units
  const goneCost = ownUnits === 0n ? 0n : mulDiv(costUnits, ownUnits, units)
  return {
    units: units - ownUnits,
    costUnits: costUnits - goneCost,
    realizedUnits: realizedUnits + proceedsUnits - goneCost,
  }
}

export type Fill = { side: 'buy' | 'sell'; sizeUnits: bigint; cashUnits: bigint; feeUnits: bigint }

export function afterFill(held: HeldShares, { side, sizeUnits, cashUnits, feeUnits }: Fill): HeldShares {
  if (side === 'sell') return afterRelease(held, sizeUnits, cashUnits - feeUnits)
  const { units, costUnits, realizedUnits } = held
  return { units: units + sizeUnits, costUnits: costUnits + cashUnits + feeUnits, realizedUnits }
}
