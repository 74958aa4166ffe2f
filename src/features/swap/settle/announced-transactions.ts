import type { SwapTaskData } from '#features/swap/task-data.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { ProviderStatus, ProviderTx } from '#kernel/money/swap-provider.ts'

/** A transaction that the provider no longer names stays in the list, because it may have paid nevertheless. */

/** How many transactions a task remembers. A provider pays in one or two; those that paid are kept first. */
const rememberedMax = 32

/** Returns all transactions that the provider has ever named as payments, the earliest first. */
export function announcedOf(
  { announced = [] }: Pick<SwapTaskData, 'announced'>,
  { destinationTxs }: Pick<ProviderStatus, 'destinationTxs'>,
): ProviderTx[] {
  const known = announced.map(({ chain_id, tx_hash }) => ({ chainId: chain_id, txHash: tx_hash }))
  const all = [...known, ...destinationTxs]
  return all.filter((tx, at) => all.findIndex((each) => isSame(each, tx)) === at)
}

const isSame = (one: ProviderTx, other: ProviderTx): boolean =>
  one.chainId === other.chainId && one.txHash === other.txHash

export function remembered(
  announced: readonly ProviderTx[],
  hasPaid: (tx: ProviderTx) => boolean,
): NonNullable<SwapTaskData['announced']> {
  return [...announced.filter(hasPaid), ...announced.filter((tx) => !hasPaid(tx))]
    .slice(0, rememberedMax)
    .map(({ chainId, txHash }) => ({ chain_id: chainId, tx_hash: txHash }))
}

export const announcedOn = ({ id }: Pick<Chain, 'id'>, announced: readonly ProviderTx[]): ProviderTx[] =>
  announced.filter(({ chainId }) => chainId === id).toReversed()
