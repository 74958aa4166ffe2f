import type { Address } from './chains.ts'

/** Tokens of strangers, at the same addresses on every chain: what a check of tokens has to distinguish. */
export type LaunchedToken = {
  symbol: string
  name: string
  address: Address
  /** What the pool trades it for; without one it cannot be traded. */
  pool?: { against: 'usdc' | 'wrapped'; dollars: bigint }
  buyTaxBps?: number
  sellTaxBps?: number
  hasCooldown?: boolean
  /** Has an owner, who can change its taxes and stop sales. */
  isOwned?: boolean
  /** How its code can be replaced. */
  proxy?: 'erc1967' | 'erc1822' | 'diamond'
}

const addressOf = (number: number): Address =>
  `0x70ce000000000000000000000000000000000${number.toString(16).padStart(3, '0')}` as Address

/** The code behind the proxy tokens. */
export const launchedImplementation = addressOf(0xfff)
export const launchedDecimals = 18

const deep = 2_000_000n

export const launchedTokens: readonly LaunchedToken[] = [
  { symbol: 'FAIR', name: 'Fair Launch', address: addressOf(1), pool: { against: 'usdc', dollars: deep } },
  {
    symbol: 'MILD',
    name: 'Mildly Taxed',
    address: addressOf(2),
    pool: { against: 'wrapped', dollars: deep },
    buyTaxBps: 100,
    sellTaxBps: 200,
    isOwned: true,
  },
  {
    symbol: 'LEVY',
    name: 'Heavily Taxed',
    address: addressOf(3),
    pool: { against: 'usdc', dollars: deep },
    buyTaxBps: 300,
    sellTaxBps: 2_500,
    isOwned: true,
  },
  {
    symbol: 'TRAP',
    name: 'Fair Until Sales Stop',
    address: addressOf(4),
    pool: { against: 'usdc', dollars: deep },
    isOwned: true,
  },
  {
    symbol: 'MORPH',
    name: 'Replaceable Code',
    address: addressOf(5),
    pool: { against: 'usdc', dollars: deep },
    proxy: 'erc1967',
  },
  { symbol: 'DRY', name: 'Without A Pool', address: addressOf(6) },
  { symbol: 'THIN', name: 'Thin Pool', address: addressOf(7), pool: { against: 'usdc', dollars: 500n } },
  {
    symbol: 'COOL',
    name: 'One Transfer Per Block',
    address: addressOf(8),
    pool: { against: 'usdc', dollars: deep },
    hasCooldown: true,
  },
  {
    symbol: 'SHIFT',
    name: 'Replaceable By Itself',
    address: addressOf(9),
    pool: { against: 'usdc', dollars: deep },
    proxy: 'erc1822',
  },
  {
    symbol: 'FACET',
    name: 'Replaceable In Parts',
    address: addressOf(10),
    pool: { against: 'usdc', dollars: deep },
    proxy: 'diamond',
  },
]
