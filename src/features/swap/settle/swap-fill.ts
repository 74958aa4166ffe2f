import { type SwapFill, swapValue } from '#engines/cost-basis/store.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import type { SwapTask, SwapTaskData } from '#features/swap/task-data.ts'
import { sameAddress } from '#kernel/money/chains.ts'
import { mulDiv } from '#kernel/money/money.ts'
import { soldPart } from '#kernel/money/partial-fill.ts'

/** Returns the part of the deposit that was sold for the given output units. */
export function soldFor(
  {
    amount_in,
    amount_out_min,
    settled_by,
  }: Pick<SwapTaskData, 'amount_in' | 'amount_out_min' | 'settled_by'>,
  outUnits: bigint,
): bigint {
  const inUnits = BigInt(amount_in)
  if (outUnits === 0n) return 0n
  // A receipt proves the whole swap, and no further payment can follow it.
  return settled_by === 'receipt'
    ? inUnits
    : soldPart({ inUnits, minOutUnits: BigInt(amount_out_min) }, outUnits)
}

/** The units that a swap has bought; `beforeUnits` of them were counted already. */
type Bought = { task: SwapTask; outUnits: bigint; beforeUnits?: bigint; at: Date }

export function filledOf(
  { chains }: Pick<SwapDeps, 'chains'>,
  { task: { data, userId }, outUnits, beforeUnits = 0n, at }: Bought,
): SwapFill {
  const soldUnits = soldFor(data, outUnits) - soldFor(data, beforeUnits)
  const units = { origin: soldUnits, destination: outUnits - beforeUnits }
  const [sold, bought] = (['origin', 'destination'] as const).map((end) => {
    const { chain_id: chainId, token } = data[end]
    const chain = chains.find(({ id }) => id === chainId)
    return {
      chainId,
      address: token.address,
      decimals: token.decimals,
      units: units[end],
      isUsdc: chain !== undefined && sameAddress(chain, token.address, chain.usdc),
    }
  })
  const acceptedMicros = mulDiv(BigInt(data.usd_micros), soldUnits, BigInt(data.amount_in))
  return { userId, sold: sold!, bought: bought!, value: swapValue(sold!, bought!, acceptedMicros), at }
}
