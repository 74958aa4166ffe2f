import type { Chain } from '#kernel/chains.ts'
import type { ProviderStatus, ProviderTx } from '#kernel/swap-provider.ts'
import type { SwapTaskData } from './task-data.ts'

/** The transactions that a provider has named as its payments: what it takes back may have paid all the same. */

/** A provider pays in one or two; who names more does not choose which ones are looked at. */
const announcedMax = 32

export const announcedOf = (
  { announced = [] }: Pick<SwapTaskData, 'announced'>,
  { destinationTxs }: Pick<ProviderStatus, 'destinationTxs'>,
): ProviderTx[] => {
  const known = announced.map(({ chain_id, tx_hash }) => ({ chainId: chain_id, txHash: tx_hash }))
  const isKnown = (tx: ProviderTx) => known.some((each) => isSame(each, tx))
  const added = destinationTxs.filter(
    (tx, at) => !isKnown(tx) && destinationTxs.findIndex((each) => isSame(each, tx)) === at,
  )
  return [...known, ...added].slice(-announcedMax)
}

const isSame = (one: ProviderTx, other: ProviderTx): boolean =>
  one.chainId === other.chainId && one.txHash === other.txHash

export const storedAnnounced = (announced: readonly ProviderTx[]): SwapTaskData['announced'] =>
  announced.map(({ chainId, txHash }) => ({ chain_id: chainId, tx_hash: txHash }))

/** The newest first. */
export const announcedOn = ({ id }: Pick<Chain, 'id'>, announced: readonly ProviderTx[]): ProviderTx[] =>
  announced.filter(({ chainId }) => chainId === id).toReversed()
