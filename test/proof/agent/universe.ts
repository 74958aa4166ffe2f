import type { Universe } from '#grammar/asset-and-chain-names.ts'

const ethereum = '1'
const base = '8453'
const arbitrum = '42161'
const polygon = '137'
const solana = '7565164'

const evm = (serial: number): string => `0x${serial.toString(16).padStart(40, '0')}`
const tokenOn = (decimals: number, serial: number, chainIds: readonly string[]) =>
  chainIds.map((chainId, at) => ({
    chainId,
    address:
      chainId === solana ? `So1111111111111111111111111111111111111${serial}${at}` : evm(serial * 16 + at),
    decimals,
  }))

/** Chains and markets like those of the local world, with more tokens, so that symbols and words collide. */
export const universe: Universe = {
  chains: [
    { id: ethereum, name: 'ethereum', displayName: 'Ethereum', family: 'evm' },
    { id: base, name: 'base', displayName: 'Base', family: 'evm' },
    { id: arbitrum, name: 'arbitrum', displayName: 'Arbitrum', family: 'evm' },
    { id: polygon, name: 'polygon', displayName: 'Polygon', family: 'evm' },
    { id: solana, name: 'solana', displayName: 'Solana', family: 'solana' },
  ],
  assets: [
    {
      symbol: 'ETH',
      name: 'Ether',
      tokens: tokenOn(18, 11, [ethereum, base, arbitrum]),
      perp: true,
      spot: false,
    },
    {
      symbol: 'WETH',
      name: 'Wrapped Ether',
      tokens: tokenOn(18, 12, [ethereum, base, arbitrum, polygon]),
      perp: false,
      spot: false,
    },
    {
      symbol: 'POL',
      name: 'Polygon Ecosystem Token',
      tokens: tokenOn(18, 13, [polygon]),
      perp: false,
      spot: false,
    },
    { symbol: 'SOL', name: 'Solana', tokens: tokenOn(9, 14, [solana]), perp: true, spot: false },
    {
      symbol: 'USDC',
      name: 'USD Coin',
      tokens: tokenOn(6, 15, [ethereum, base, arbitrum, polygon, solana]),
      perp: false,
      spot: false,
    },
    {
      symbol: 'USDT',
      name: 'Tether USD',
      tokens: tokenOn(6, 16, [ethereum, arbitrum, polygon]),
      perp: false,
      spot: false,
    },
    {
      symbol: 'DAI',
      name: 'Dai Stablecoin',
      tokens: tokenOn(18, 17, [ethereum, base]),
      perp: false,
      spot: false,
    },
    {
      symbol: 'WBTC',
      name: 'Wrapped Bitcoin',
      tokens: tokenOn(8, 18, [ethereum, arbitrum, polygon]),
      perp: false,
      spot: false,
    },
    {
      symbol: 'cbBTC',
      name: 'Coinbase Wrapped BTC',
      tokens: tokenOn(8, 19, [base]),
      perp: false,
      spot: false,
    },
    {
      symbol: 'LINK',
      name: 'Chainlink',
      tokens: tokenOn(18, 20, [ethereum, arbitrum, polygon]),
      perp: true,
      spot: false,
    },
    { symbol: 'ARB', name: 'Arbitrum', tokens: tokenOn(18, 21, [arbitrum]), perp: true, spot: false },
    { symbol: 'AERO', name: 'Aerodrome Finance', tokens: tokenOn(18, 22, [base]), perp: false, spot: false },
    { symbol: 'PEPE', name: 'Pepe', tokens: tokenOn(18, 23, [ethereum]), perp: false, spot: false },
    { symbol: 'BONK', name: 'Bonk', tokens: tokenOn(5, 24, [solana]), perp: false, spot: false },
    { symbol: 'JUP', name: 'Jupiter', tokens: tokenOn(6, 25, [solana]), perp: false, spot: false },
    { symbol: 'WIF', name: 'dogwifhat', tokens: tokenOn(6, 26, [solana]), perp: false, spot: false },
    { symbol: 'ONE', name: 'One Token', tokens: tokenOn(18, 27, [base]), perp: false, spot: false },
    { symbol: 'BTC', name: 'Bitcoin', tokens: [], perp: true, spot: false },
    { symbol: 'DOGE', name: 'Dogecoin', tokens: [], perp: true, spot: false },
    { symbol: 'kPEPE', name: 'kPEPE', tokens: [], perp: true, spot: false },
    { symbol: 'HYPE', name: 'Hyperliquid', tokens: [], perp: true, spot: true },
    { symbol: 'AVAX', name: 'Avalanche', tokens: [], perp: true, spot: false },
    { symbol: 'XRP', name: 'XRP', tokens: [], perp: true, spot: false },
    { symbol: 'PURR', name: 'Purr', tokens: [], perp: false, spot: true },
    { symbol: 'UBTC', name: 'Unit Bitcoin', tokens: [], perp: false, spot: true },
    { symbol: 'UETH', name: 'Unit Ethereum', tokens: [], perp: false, spot: true },
  ],
}
