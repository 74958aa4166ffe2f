import { type SwapFill, swapValue } from '#engines/cost-basis/store.ts'
import { sameAddress } from '#kernel/chains.ts'
import type { SwapDeps } from './deps.ts'
import type { SwapTask } from './task-data.ts'

/** What a swap sold and bought, for the cost of what the user holds. */

type Ended = { task: SwapTask; result: { amount_in?: unknown; amount_out?: unknown } | null; at: Date }

export function filledOf({ chains }: Pick<SwapDeps, 'chains'>, { task, result, at }: Ended): SwapFill {
  const { data, userId } = task
  const amounts = { origin: result?.amount_in, destination: result?.amount_out }
  const [sold, bought] = (['origin', 'destination'] as const).map((end) => {
    const { chain_id: chainId, token } = data[end]
    const chain = chains.find(({ id }) => id === chainId)
    return {
      chainId,
      address: token.address,
      decimals: token.decimals,
      units: BigInt(String(amounts[end] ?? '0')),
      isUsdc: chain !== undefined && sameAddress(chain, token.address, chain.usdc),
    }
  })
  return {
    userId,
    sold: sold!,
    bought: bought!,
    value: swapValue(sold!, bought!, BigInt(data.usd_micros)),
    at,
  }
}
