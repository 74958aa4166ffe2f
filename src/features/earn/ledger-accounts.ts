import { usdcDecimals } from '#kernel/money/money.ts'
import type { AccountRef } from '#kernel/task/task.ts'
import type { Vault } from '#upstreams/vault/vault.ts'

const assetName = (chainId: string, address: string) => `${chainId}:${address.toLowerCase()}`

export const cashAsset = (vault: Pick<Vault, 'chainId'>, usdc: string) => assetName(vault.chainId, usdc)
export const shareAsset = (vault: Pick<Vault, 'chainId' | 'address'>) =>
  assetName(vault.chainId, vault.address)
export const usdcToken = (address: string) => ({ symbol: 'USDC', decimals: usdcDecimals, address })

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
