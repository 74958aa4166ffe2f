import type { SwapDeps } from '#features/swap/deps.ts'
import { isLossAccepted } from '#features/swap/route/loss.ts'
import { valueAtPrice } from '#features/swap/route/token-value.ts'
import type { SwapTaskData } from '#features/swap/task-data.ts'
import { sameAddress } from '#kernel/money/chains.ts'
import { mulDiv } from '#kernel/money/money.ts'
import { allOf, type Paid, type Payment, quotedOut } from './payments.ts'

/**
 * The verdict on all payments of a swap. `filled`: at least the minimum arrived. `returned`: the payments are worth
 * the deposit, less the cost of a refund. `short`: less arrived, which may also be dust from a stranger.
 */
export type Verdict = 'filled' | 'returned' | 'short' | 'none'

type Sums = {
  fillUnits: bigint
  minUnits: bigint
  remainingMicros: bigint
  valueMicros: bigint
  isReturned: boolean
}

export function verdictOn({ fillUnits, minUnits, remainingMicros, valueMicros, isReturned }: Sums): Verdict {
  if (fillUnits >= minUnits) return 'filled'
  if (isReturned && isLossAccepted(remainingMicros, valueMicros)) return 'returned'
  return fillUnits > 0n || isReturned ? 'short' : 'none'
}

type Judged = { data: SwapTaskData; paid: Paid }

export async function verdictOf(deps: SwapDeps, { data, paid }: Judged): Promise<Verdict> {
  const all = allOf(paid)
  const values = await Promise.all(all.map((each) => worthMicros(deps, data, each)))
  return verdictOn({
    fillUnits: paid.fill?.units ?? 0n,
    minUnits: BigInt(data.amount_out_min),
    remainingMicros: values.reduce((sum, micros) => sum + micros, 0n),
    valueMicros: BigInt(data.usd_micros),
    isReturned: paid.returns.length > 0,
  })
}

/**
 * Returns the value of a payment: by the terms of the swap for its own tokens, otherwise at the trusted price, or 0
 * without a price.
 */
export async function worthMicros(
  deps: SwapDeps,
  data: SwapTaskData,
  { place, units }: Payment,
): Promise<bigint> {
  if (isBought(data, { place })) return worthOfUnits(data, 'fill', units)
  if (isDeposited(data, { place })) return worthOfUnits(data, 'back', units)
  const { chain, token } = place
  const isNative = sameAddress(chain, token.address, chain.native.address)
  return (await valueAtPrice(deps, { chain, token, isNative }, units)) ?? 0n
}

export const worthOfUnits = (data: SwapTaskData, of: 'fill' | 'back', units: bigint): bigint =>
  mulDiv(BigInt(data.usd_micros), units, of === 'fill' ? quotedOut(data) : BigInt(data.amount_in))

export const isDeposited = (
  { origin }: SwapTaskData,
  { place: { chain, token } }: Pick<Payment, 'place'>,
): boolean => chain.id === origin.chain_id && sameAddress(chain, token.address, origin.token.address)

const isBought = (
  { destination }: SwapTaskData,
  { place: { chain, token } }: Pick<Payment, 'place'>,
): boolean =>
  chain.id === destination.chain_id && sameAddress(chain, token.address, destination.token.address)
