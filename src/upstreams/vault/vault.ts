import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import { addressOf, callData, type Flow, flowOf, type Log, type Method, parseUint } from './erc4626-abi.ts'

export type { Flow } from './erc4626-abi.ts'

/** A share price has this many digits beyond the asset's own; with six digits, an hour's yield would be invisible. */
const extraDigits = 12

export type VaultState = {
  block: bigint
  blockTimeSeconds: number
  asset: string
  shareDecimals: number
  totalAssetsUnits: bigint
  totalSupplyUnits: bigint
  /** The asset units of one whole share, times 10^priceDigits. */
  price: bigint
  /** The asset units of one whole share, as the vault rounds it. */
  oneShareUnits: bigint
}
export type Account = { block: bigint; sharesUnits: bigint; cashUnits: bigint }

/** One ERC-4626 vault. Its max* limits are not read, because some vaults always return 0. */
export type Vault = {
  chainId: string
  address: string
  priceDigits: number
  state(): Promise<VaultState>
  /** Returns the owner's shares and assets at the newest block, or at the given one. */
  account(owner: string, at?: bigint): Promise<Account>
  assetsOf(sharesUnits: bigint): Promise<bigint>
  depositCalls(owner: string, assetsUnits: bigint): EvmCall[]
  withdrawCalls(owner: string, assetsUnits: bigint): EvmCall[]
  redeemCalls(owner: string, sharesUnits: bigint): EvmCall[]
  deposited(logs: readonly Log[], owner: string): Flow | undefined
  withdrawn(logs: readonly Log[], owner: string): Flow | undefined
}

type View = { to: string; data: string }
type Chain = {
  views(
    views: readonly View[],
    options?: { at?: bigint },
  ): Promise<{
    head: { number: bigint; timestampSeconds: number }
    results: { success: boolean; data: string }[]
  }>
}
type Options = { chain: Chain; chainId: string; address: string; asset: string }

export function createVault({ chain, chainId, address, asset }: Options): Vault {
  const view = (method: Method, ...args: (bigint | string)[]): View => ({
    to: address,
    data: callData(method, ...args),
  })
  const call = (to: string, method: Method, ...args: (bigint | string)[]): EvmCall => ({
    to,
    value: 0n,
    data: callData(method, ...args),
  })

  const readAll = async (views: readonly View[], at?: bigint) => {
    const { head, results } = await chain.views(views, at === undefined ? {} : { at })
    return { head, words: results.map(({ success, data }) => (success ? data : '0x')) }
  }
  const required = (data: string | undefined, what: string): bigint => {
    const value = parseUint(data ?? '0x')
    if (value === undefined) throw new Fault('upstream_rejected', `The vault did not return its ${what}`)
    return value
  }

  /** The share's own decimals, which are 18 for many vaults of a 6-decimal asset. */
  const shareDecimals = createCachedValue(
    async () => {
      const { words } = await readAll([view('decimals')])
      return Number(required(words[0], 'decimals'))
    },
    { ttlMs: Number.POSITIVE_INFINITY, nowMs: monotonicMs },
  )

  return {
    chainId,
    address,
    priceDigits: extraDigits,

    async state() {
      const digits = await shareDecimals.get()
      const one = 10n ** BigInt(digits)
      const { head, words } = await readAll([
        view('asset'),
        view('totalAssets'),
        view('totalSupply'),
        view('convertToAssets', one * 10n ** BigInt(extraDigits)),
        view('convertToAssets', one),
      ])
      const stated = addressOf(words[0] ?? '0x')
      if (stated?.toLowerCase() !== asset.toLowerCase())
        throw new Fault('upstream_rejected', 'The vault holds an asset that is not the configured one')
      return {
        block: head.number,
        blockTimeSeconds: head.timestampSeconds,
        asset,
        shareDecimals: digits,
        totalAssetsUnits: required(words[1], 'total assets'),
        totalSupplyUnits: required(words[2], 'total supply'),
        price: required(words[3], 'share price'),
        oneShareUnits: required(words[4], 'share price'),
      }
    },

    async account(owner, at) {
      const views = [view('balanceOf', owner), { to: asset, data: callData('balanceOf', owner) }]
      const { head, words } = await readAll(views, at)
      return {
        block: head.number,
        sharesUnits: required(words[0], 'shares'),
        cashUnits: required(words[1], 'asset balance'),
      }
    },

    async assetsOf(sharesUnits) {
      const { words } = await readAll([view('convertToAssets', sharesUnits)])
      return required(words[0], 'share price')
    },

    depositCalls: (owner, assetsUnits) => [
      call(asset, 'approve', address, assetsUnits),
      call(address, 'deposit', assetsUnits, owner),
    ],
    withdrawCalls: (owner, assetsUnits) => [call(address, 'withdraw', assetsUnits, owner, owner)],
    redeemCalls: (owner, sharesUnits) => [call(address, 'redeem', sharesUnits, owner, owner)],
    deposited: (logs, owner) => flowOf(logs, { vault: address, owner, event: 'deposit' }),
    withdrawn: (logs, owner) => flowOf(logs, { vault: address, owner, event: 'withdraw' }),
  }
}
