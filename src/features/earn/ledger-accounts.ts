import type { AccountRef } from '#kernel/task.ts'
import { externalAccount } from '#kernel/task.ts'
import type { Vault } from '#upstreams/vault/vault.ts'

/** The ledger accounts of cash and vault shares. */

const assetName = (chainId: string, address: string) => `${chainId}:${address.toLowerCase()}`

export const cashAsset = (vault: Pick<Vault, 'chainId'>, usdc: string) => assetName(vault.chainId, usdc)
export const shareAsset = (vault: Pick<Vault, 'chainId' | 'address'>) =>
  assetName(vault.chainId, vault.address)

export const walletAccount = (userId: string, asset: string): AccountRef => ({
  owner: userId,
  asset,
  subAccount: 'wallet',
})

export const positionPrefix = 'position:'
export const positionSubAccount = (positionId: string) => `${positionPrefix}${positionId}`
export const positionAccount = (userId: string, asset: string, positionId: string): AccountRef => ({
  owner: userId,
  asset,
  subAccount: positionSubAccount(positionId),
})

export const externalAccountOf = externalAccount
/** Idempotency keys of a task's moves, so that a repeated step moves nothing twice. */
export const moveKeys = (taskId: string) => ({
  cash: `${taskId}:cash`,
  shares: `${taskId}:shares`,
  excess: `${taskId}:beyond`,
})
