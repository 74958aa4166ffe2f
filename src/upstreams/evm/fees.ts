/** EIP-1559 fees of a new transaction, and the smallest increase for a replacement. */

export type Fees = { maxFeeWei: bigint; priorityWei: bigint }
export type FeeRule = { priorityFloorWei: bigint; priorityCapWei: bigint; capWei: bigint }

const ceilDiv = (a: bigint, b: bigint) => (a + b - 1n) / b
const max = (a: bigint, b: bigint) => (a > b ? a : b)
const min = (a: bigint, b: bigint) => (a < b ? a : b)

/** Raises a fee for a replacement: public nodes require about 10 % more, and 12.5 % satisfies all of them. */
const raised = (wei: bigint): bigint => ceilDiv(wei * 9n, 8n)

export const raiseFees = (old: Fees): Fees => ({
  maxFeeWei: raised(old.maxFeeWei),
  priorityWei: raised(old.priorityWei),
})

export const isValidReplacement = (old: Fees, next: Fees): boolean =>
  next.maxFeeWei >= raised(old.maxFeeWei) && next.priorityWei >= raised(old.priorityWei)

/** Quotes twice the base fee, which outlives six full blocks in a row; undefined while the cap is exceeded. */
export function quoteFees(baseFeeWei: bigint, suggestedWei: bigint, rule: FeeRule): Fees | undefined {
  if (baseFeeWei >= rule.capWei) return undefined
  // A node may suggest any tip, and the sender pays the whole tip, so the tip is capped.
  const tipWei = max(min(suggestedWei, rule.priorityCapWei), rule.priorityFloorWei)
  const priorityWei = min(tipWei, rule.capWei - baseFeeWei)
  return { maxFeeWei: min(baseFeeWei * 2n + priorityWei, rule.capWei), priorityWei }
}

export type Replacement = { kind: 'raise' | 'cancel'; fees: Fees }

/**
 * Plans the next replacement of a transaction: both fees rise by the required step, or to the market if that is higher.
 * If the raised fee would exceed the cap, one last transaction that moves nothing takes the nonce, and no other
 * replacement follows.
 */
export function planReplacement(
  old: Fees,
  market: Fees | undefined,
  capWei: bigint,
): Replacement | undefined {
  const minimum = raiseFees(old)
  const fees = market
    ? {
        maxFeeWei: max(minimum.maxFeeWei, market.maxFeeWei),
        priorityWei: max(minimum.priorityWei, market.priorityWei),
      }
    : minimum
  if (fees.maxFeeWei <= capWei) return { kind: 'raise', fees }
  return old.maxFeeWei <= capWei ? { kind: 'cancel', fees: minimum } : undefined
}

/**
 * Returns the fees of an empty transaction that replaces one nobody needs any more. Returns undefined if the old
 * one pays enough and is not overdue, or if more would exceed the cap.
 */
export function planEmptyReplacement(
  { fees: old, isOverdue }: { fees: Fees; isOverdue: boolean },
  { baseFeeWei, suggestedWei }: { baseFeeWei: bigint; suggestedWei: bigint },
  rule: FeeRule,
): Fees | undefined {
  const market = quoteFees(baseFeeWei, suggestedWei, rule)
  if (!market) return undefined
  const paysEnough = old.maxFeeWei >= baseFeeWei + market.priorityWei
  if (paysEnough && !isOverdue) return undefined
  const plan = planReplacement(old, market, rule.capWei)
  return plan?.kind === 'raise' ? plan.fees : undefined
}
