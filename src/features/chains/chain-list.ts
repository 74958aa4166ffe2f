import {
  type Chain,
  type ChainOperation,
  type EvmChainRow,
  nativeSentinel,
  type RelayRouter,
  type SolanaChainRow,
  type SwapContracts,
  type Token,
} from '#kernel/money/chains.ts'
import { nativeDecimals, usdcDecimals } from '#kernel/money/money.ts'

/** This table lists all chains that the gateway knows; it serves those that have an RPC URL. */

const calibur = '0x000000009B1D0aF20D8C6d0A44e162d11F9b8f00'
const multicall3 = '0xcA11bde05977b3631167028862bE2a173976CA11'
/** LI.FI's contract has this address on all chains. */
const lifiDiamond = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE'
const gwei = 1_000_000_000n
const relayDepository = '0x4cd00e387622c35bddb9b4c962c136462338bc31'
/** Versions 3.2, 3 and 2.1 of the router, each with its approval proxy, have these addresses on all chains. */
const relayRouters: readonly RelayRouter[] = [
  {
    router: '0x0729e2a4716d9f7dd17858d5d504426d228697f7',
    approvalProxy: '0x5567954cd026cebfe486062cb75848e0f1c12e58',
  },
  {
    router: '0xb92fe925dc43a0ecde6c8b1a2709c170ec4fff4f',
    approvalProxy: '0xccc88a9d1b4ed6b0eaba998850414b24f1c315be',
  },
  {
    router: '0x3ec130b627944cad9b2750300ecb0a695da522b6',
    approvalProxy: '0x58cc3e0aa6cd7bf795832a225179ec2d848ce3e7',
  },
]

export const solanaId = '7565164'

const token = (symbol: string, name: string, decimals: number, address: string): Token => ({
  symbol,
  name,
  decimals,
  address,
})

/** The chain's USDC is the first of its tokens. */
const tokensWithUsdc = (address: string, others: Token[], name = 'USD Coin') => ({
  usdc: address,
  tokens: [token('USDC', name, usdcDecimals, address), ...others],
})

const evmDefaults = {
  family: 'evm',
  delegate: calibur,
  multicall: multicall3,
  probeWei: 10n ** 16n,
  callsSeeBlockNumber: true,
  gas: { txMax: 2n ** 24n, callsMax: 12_000_000n, emptyTx: 21_000n },
  readTimeoutMs: 1_500,
  blockPollMs: 500,
  stuckAfterMs: 60_000,
  batchTtlSeconds: 600,
} as const

const ether = {
  ...token('ETH', 'Ether', nativeDecimals, nativeSentinel),
  priceId: 'coingecko:ethereum',
}

const swapsAt = (wrapped: string, router: string): SwapContracts => ({
  wrapped,
  routers: [router],
  depository: relayDepository,
  aggregator: lifiDiamond,
  relayRouters,
})

type Draft<R> = Omit<R, 'rpcUrl' | 'supportedOperations'>

const ethereum: Draft<EvmChainRow> = {
  ...evmDefaults,
  id: '1',
  name: 'ethereum',
  displayName: 'Ethereum',
  native: ether,
  blockPollMs: 2_000,
  confirmations: 12,
  ...tokensWithUsdc('0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', [
    token('USDT', 'Tether USD', 6, '0xdAC17F958D2ee523a2206206994597C13D831ec7'),
    token('WETH', 'Wrapped Ether', 18, '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2'),
    token('WBTC', 'Wrapped BTC', 8, '0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599'),
    token('LINK', 'Chainlink', 18, '0x514910771AF9Ca656af840dff83E8264EcF986CA'),
    token('UNI', 'Uniswap', 18, '0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984'),
  ]),
  swaps: swapsAt('0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2', '0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D'),
  llamaSlug: 'ethereum',
  explorerUrl: 'https://etherscan.io',
  fees: { priorityFloorWei: gwei / 10n, priorityCapWei: 5n * gwei, capWei: 200n * gwei },
}

const base: Draft<EvmChainRow> = {
  ...evmDefaults,
  id: '8453',
  name: 'base',
  displayName: 'Base',
  native: ether,
  confirmations: 6,
  ...tokensWithUsdc('0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', [
    token('WETH', 'Wrapped Ether', 18, '0x4200000000000000000000000000000000000006'),
    token('cbBTC', 'Coinbase Wrapped BTC', 8, '0xcbB7C0000aB88B473b1f5aFd9ef808440eed33Bf'),
    token('DAI', 'Dai Stablecoin', 18, '0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb'),
    token('AERO', 'Aerodrome', 18, '0x940181a94A35A4569E4529A3CDfB74e38FD98631'),
  ]),
  swaps: swapsAt('0x4200000000000000000000000000000000000006', '0x4752ba5DBc23f44D87826276BF6Fd6b1C372aD24'),
  llamaSlug: 'base',
  explorerUrl: 'https://basescan.org',
  fees: { priorityFloorWei: gwei / 1_000n, priorityCapWei: gwei / 10n, capWei: 20n * gwei },
}

const arbitrum: Draft<EvmChainRow> = {
  ...evmDefaults,
  id: '42161',
  name: 'arbitrum',
  displayName: 'Arbitrum One',
  callsSeeBlockNumber: false,
  // The data of a transaction is charged in gas, at the price of the parent chain.
  gas: { ...evmDefaults.gas, emptyTx: 2_000_000n },
  native: ether,
  blockPollMs: 250,
  confirmations: 20,
  ...tokensWithUsdc('0xaf88d065e77c8cC2239327C5EDb3A432268e5831', [
    token('WETH', 'Wrapped Ether', 18, '0x82aF49447D8a07e3bd95BD0d56f35241523fBab1'),
    token('WBTC', 'Wrapped BTC', 8, '0x2f2a2543B76A4166549F7aaB2e75Bef0aefC5B0f'),
    token('ARB', 'Arbitrum', 18, '0x912CE59144191C1204E64559FE8253a0e49E6548'),
    token('LINK', 'Chainlink', 18, '0xf97f4df75117a78c1A5a0DBb814Af92458539FB4'),
  ]),
  swaps: swapsAt('0x82aF49447D8a07e3bd95BD0d56f35241523fBab1', '0x4752ba5DBc23f44D87826276BF6Fd6b1C372aD24'),
  llamaSlug: 'arbitrum',
  explorerUrl: 'https://arbiscan.io',
  fees: { priorityFloorWei: gwei / 1_000n, priorityCapWei: gwei / 10n, capWei: 20n * gwei },
}

/** The venue's test network takes deposits on Arbitrum Sepolia; USDC is test money on this chain. */
const arbitrumSepolia: Draft<EvmChainRow> = {
  ...arbitrum,
  id: '421614',
  name: 'arbitrum-sepolia',
  displayName: 'Arbitrum Sepolia',
  ...tokensWithUsdc('0x1baAbB04529D43a73232B713C0FE471f7c7334d5', [], 'USD Coin (test)'),
  swaps: null,
  llamaSlug: 'arbitrum-sepolia',
  explorerUrl: 'https://sepolia.arbiscan.io',
}

const polygon: Draft<EvmChainRow> = {
  ...evmDefaults,
  probeWei: 100n * 10n ** 18n,
  id: '137',
  name: 'polygon',
  displayName: 'Polygon',
  native: {
    ...token('POL', 'POL', nativeDecimals, nativeSentinel),
    priceId: 'coingecko:polygon-ecosystem-token',
  },
  confirmations: 64,
  ...tokensWithUsdc('0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', [
    token('USDC.e', 'Bridged USD Coin', 6, '0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174'),
    token('WETH', 'Wrapped Ether', 18, '0x7ceB23fD6bC0adD59E62ac25578270cFf1b9f619'),
    token('WPOL', 'Wrapped POL', 18, '0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270'),
    token('LINK', 'Chainlink', 18, '0x53E0bca35eC356BD5ddDFebbD1Fc0fD03FaBad39'),
  ]),
  swaps: swapsAt('0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270', '0xedf6066a2b290C185783862C7F4776A2C8077AD1'),
  llamaSlug: 'polygon',
  explorerUrl: 'https://polygonscan.com',
  fees: { priorityFloorWei: 25n * gwei, priorityCapWei: 300n * gwei, capWei: 2_000n * gwei },
}

const solana: Draft<SolanaChainRow> = {
  family: 'solana',
  id: solanaId,
  name: 'solana',
  displayName: 'Solana',
  native: { ...token('SOL', 'Solana', 9, '11111111111111111111111111111111'), priceId: 'coingecko:solana' },
  confirmations: 32,
  isSponsored: false,
  finality: 'finalized',
  statusPollMs: 800,
  fees: { priceFloorMicroLamports: 1_000n, priceCapMicroLamports: 2_000_000n },
  // The accounts of the depository derive from its program, by the seeds `relay_depository` and `vault`.
  depository: {
    program: '99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2',
    state: 'Dodg2HifwU8rmaVVyMyUZDGTRbqAJTyVYxXPwcbNpBKc',
    vault: '7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ',
  },
  readTimeoutMs: 1_500,
  ...tokensWithUsdc('EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', [
    token('BONK', 'Bonk', 5, 'DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263'),
    token('JUP', 'Jupiter', 6, 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN'),
    token('PYUSD', 'PayPal USD', 6, '2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo'),
  ]),
  llamaSlug: 'solana',
  explorerUrl: 'https://solscan.io',
}

const drafts = [ethereum, base, arbitrum, arbitrumSepolia, polygon, solana]

/** A local chain makes a block with each transaction. */
const localBlockPollMs = 50
const localStatusPollMs = 100

type Settings = {
  /** The RPC URLs by public chain id. */
  urls: Readonly<Record<string, string | undefined>>
  /** Local chains do not reorganise, so one block is final there. */
  finality: 'local' | 'public'
  isSolanaSponsored?: boolean
  providers?: Providers
}
type Providers = { relay: boolean; lifi: boolean }

/** Returns whether a swap can start on the chain; without a sponsor nothing can be signed for a user there. */
function hasRoutes(chain: Draft<EvmChainRow> | Draft<SolanaChainRow>, { relay, lifi }: Providers): boolean {
  if (chain.family === 'solana') return relay && chain.isSponsored
  const { swaps, delegate } = chain
  if (swaps === null || delegate === null) return false
  return (relay && swaps.depository !== null) || (lifi && swaps.aggregator !== null)
}

export const chainIds: readonly string[] = drafts.map(({ id }) => id)

export function chainList({
  urls,
  finality,
  isSolanaSponsored = false,
  providers = { relay: false, lifi: false },
}: Settings): Chain[] {
  const served = drafts
    .filter(({ id }) => urls[id])
    .map((known) => (known.family === 'solana' ? { ...known, isSponsored: isSolanaSponsored } : known))
  const swapping = served.filter((draft) => hasRoutes(draft, providers))
  const operations: readonly ChainOperation[] = swapping.length > 1 ? ['swap', 'bridge'] : ['swap']
  return served.map((draft): Chain => {
    const supportedOperations = swapping.includes(draft) ? operations : []
    const row = { rpcUrl: urls[draft.id]!, supportedOperations }
    if (finality === 'public') return { ...draft, ...row }
    const local = { ...row, confirmations: 1 }
    return draft.family === 'evm'
      ? { ...draft, ...local, blockPollMs: localBlockPollMs }
      : { ...draft, ...local, finality: 'confirmed', statusPollMs: localStatusPollMs }
  })
}
