import {
  type Address,
  type ChainId,
  depository,
  solver,
  type WorldChain,
  worldChains,
} from '#world/evm/chains.ts'
import { depositoryProgram } from '#world/solana/depository-accounts.ts'
import { associatedTokenAddress, worldKeyPair } from '#world/solana/keys.ts'
import { worldTokens } from '#world/solana/tokens.ts'

/** As Relay names it; the world's own number is another one. */
export const solanaChainId = 792703809
export const zeroAddress: Address = '0x0000000000000000000000000000000000000000'
export const systemProgram = '11111111111111111111111111111111'
/** World-only: derived from a public label. */
export const solanaKey = worldKeyPair('solver')

export type Currency = {
  chainId: number
  address: string
  symbol: string
  name: string
  decimals: number
  metadata: { logoURI: string; verified: boolean; isNative: boolean }
}

export type SolverChain = {
  id: number
  name: string
  displayName: string
  vm: 'evm' | 'svm'
  native: Currency
  tokens: readonly Currency[]
  /** Dollars that one payment of the solver costs on this chain. */
  gasUsd: string
  /** The solver's account. */
  wallet: string
  /** The contract, or program, that takes deposits. */
  depository: string
  evm?: WorldChain
}

const currency = (
  chainId: number,
  address: string,
  fields: { symbol: string; name: string; decimals: number },
  { isNative = false }: { isNative?: boolean } = {},
): Currency => ({
  chainId,
  address,
  symbol: fields.symbol,
  name: fields.name,
  decimals: fields.decimals,
  metadata: { logoURI: '', verified: true, isNative },
})

const gasUsd: Record<ChainId, string> = { '1': '0.5', '8453': '0.01', '42161': '0.02', '137': '0.01' }
const nativeNames: Record<string, string> = { ETH: 'Ether', POL: 'Polygon Ecosystem Token' }

const evmChain = (chain: WorldChain): SolverChain => {
  const id = Number(chain.id)
  const { symbol } = chain.native
  return {
    id,
    name: chain.slug,
    displayName: chain.name,
    vm: 'evm',
    native: currency(
      id,
      zeroAddress,
      { symbol, name: nativeNames[symbol] ?? symbol, decimals: 18 },
      { isNative: true },
    ),
    tokens: chain.tokens.map((token) => currency(id, token.address.toLowerCase(), token)),
    gasUsd: gasUsd[chain.id],
    wallet: solver.toLowerCase(),
    depository: depository.toLowerCase(),
    evm: chain,
  }
}

const solanaTokens = worldTokens.filter(({ isLaunched }) => !isLaunched)

const solana: SolverChain = {
  id: solanaChainId,
  name: 'solana',
  displayName: 'Solana',
  vm: 'svm',
  native: currency(
    solanaChainId,
    systemProgram,
    { symbol: 'SOL', name: 'Solana', decimals: 9 },
    { isNative: true },
  ),
  tokens: solanaTokens.map((token) => currency(solanaChainId, token.mint, token)),
  gasUsd: '0.005',
  wallet: solanaKey.address,
  depository: depositoryProgram,
}

export const solverChains: readonly SolverChain[] = [...worldChains.map(evmChain), solana]

export const chainById = (id: number): SolverChain | undefined => solverChains.find((each) => each.id === id)

export const requireChain = (id: number): SolverChain => {
  const chain = chainById(id)
  if (!chain) throw new Error(`The solver has no chain ${id}.`)
  return chain
}

/** EVM addresses compare in lower case, Solana's exactly. */
const normalizeAddress = (chain: SolverChain, address: string): string =>
  chain.vm === 'evm' ? address.toLowerCase() : address

export const currencyAt = (chain: SolverChain, address: string): Currency | undefined =>
  [chain.native, ...chain.tokens].find((each) => each.address === normalizeAddress(chain, address))

export const requireCurrency = (chainId: number, address: string): Currency => {
  const found = currencyAt(requireChain(chainId), address)
  if (!found) throw new Error(`The solver has no currency ${address} on chain ${chainId}.`)
  return found
}

export const usdcOn = (chain: SolverChain): Currency => {
  const found = chain.tokens.find(({ symbol }) => symbol === 'USDC')
  if (!found) throw new Error(`${chain.displayName} has no USDC.`)
  return found
}

/** WETH9 around the chain's native coin. */
export const wrappedOn = (chain: SolverChain): Currency | undefined => {
  const wrapped = chain.evm?.tokens.find(({ kind }) => kind === 'wrapped')
  return wrapped && currencyAt(chain, wrapped.address)
}

export const tokenProgramOf = (mint: string): string => {
  const token = worldTokens.find((each) => each.mint === mint)
  if (!token) throw new Error(`This world has no token ${mint}.`)
  return token.program
}

export const tokenAccountOf = (owner: string, mint: string): string =>
  associatedTokenAddress(owner, mint, tokenProgramOf(mint))
