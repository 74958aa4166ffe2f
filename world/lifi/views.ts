import { lifiDiamond } from '#world/evm/chains.ts'
import { type Currency, type SolverChain, solverChains } from '#world/solver/chains.ts'
import type { Connections } from '#world/solver/connections.ts'
import { formatUsd } from '#world/solver/money.ts'
import type { Prices } from '#world/solver/prices.ts'

/** Chains, tokens and tools in LI.FI's form. */

export const lifiChains = solverChains.filter(({ vm }) => vm === 'evm')
const keys: Readonly<Record<number, string>> = { 1: 'eth', 137: 'pol', 8453: 'bas', 42161: 'arb' }
export const keyOf = ({ id }: SolverChain): string => keys[id] ?? String(id)

export const chainNamed = (text: string): SolverChain | undefined =>
  lifiChains.find((chain) => String(chain.id) === text || keyOf(chain) === text.toLowerCase())

/** The symbols that are coins of their own at LI.FI. */
const coinKeys = new Set(['ETH', 'POL', 'DAI', 'LINK', 'USDC', 'USDT', 'WBTC', 'WETH', 'WPOL'])

export const tokenView = async (prices: Prices, currency: Currency) => {
  const { address, chainId, symbol, decimals, name } = currency
  const price = await prices.priceOf(currency)
  return {
    address,
    chainId,
    symbol,
    decimals,
    name,
    ...(coinKeys.has(symbol) && { coinKey: symbol }),
    logoURI: '',
    priceUSD: price === undefined ? '0' : formatUsd(price),
  }
}

export const chainViews = (prices: Prices, connections: Connections) =>
  Promise.all(
    lifiChains.map(async (chain) => {
      const url = connections.publicUrl(chain.id)
      return {
        key: keyOf(chain),
        chainType: 'EVM',
        name: chain.displayName,
        coin: chain.native.symbol,
        id: chain.id,
        mainnet: true,
        logoURI: '',
        tokenlistUrl: '',
        multicallAddress: '0xcA11bde05977b3631167028862bE2a173976CA11',
        metamask: {
          chainId: `0x${chain.id.toString(16)}`,
          blockExplorerUrls: [url],
          chainName: chain.displayName,
          nativeCurrency: { name: chain.native.symbol, symbol: chain.native.symbol, decimals: 18 },
          rpcUrls: [url],
        },
        nativeToken: await tokenView(prices, chain.native),
        diamondAddress: lifiDiamond,
      }
    }),
  )

export const tokenViews = async (prices: Prices, wanted: readonly SolverChain[]) =>
  Object.fromEntries(
    await Promise.all(
      wanted.map(async (chain) => {
        const currencies = [chain.native, ...chain.tokens]
        return [chain.id, await Promise.all(currencies.map((each) => tokenView(prices, each)))] as const
      }),
    ),
  )

export const bridgeTool = { key: 'across', name: 'AcrossV3', logoURI: '' }
export const exchangeTool = { key: 'uniswap', name: 'Uniswap', logoURI: '' }

export const toolViews = () => {
  const ids = lifiChains.map(({ id }) => id)
  const pairs = ids.flatMap((fromChainId) =>
    ids.filter((toChainId) => toChainId !== fromChainId).map((toChainId) => ({ fromChainId, toChainId })),
  )
  return {
    bridges: [{ ...bridgeTool, supportedChains: pairs }],
    exchanges: [{ ...exchangeTool, supportedChains: ids }],
  }
}
