import { keccak256, pad, parseUnits, toBytes, toFunctionSelector, zeroAddress } from 'viem'
import { priceBook } from '#world/prices/book.ts'
import { artifact, uniswapArtifact } from './artifact.ts'
import type { WorldChain, WorldToken } from './chains.ts'
import * as chains from './chains.ts'
import {
  type LaunchedToken,
  launchedDecimals,
  launchedImplementation,
  launchedTokens,
} from './launched-tokens.ts'
import type { Rpc } from './rpc.ts'
import {
  type InnerCall,
  innerCall,
  poolOf,
  type Step,
  sendCalls,
  setCode,
  setTokenMetadata,
} from './seed-steps.ts'

/** One token costs one dollar at its launch. */
const unitsPerDollar = 10n ** BigInt(launchedDecimals)
const heldUnits = 1_000_000n * unitsPerDollar

/** `eip1967.proxy.implementation` and `eip1967.proxy.admin`, hashed and less one; `PROXIABLE`, hashed. */
const implementationSlot = '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc'
const administratorSlot = '0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103'
const proxiableSlot = keccak256(toBytes('PROXIABLE'))

const placeCode = ({ address, proxy }: LaunchedToken): Step[] => {
  const setAddress = (slot: string, value: string) => ({
    method: 'anvil_setStorageAt',
    params: [address, slot, pad(value as `0x${string}`)],
  })
  if (proxy === 'erc1967')
    return [
      setCode(address, artifact('TokenProxy').runtime),
      setAddress(implementationSlot, launchedImplementation),
      setAddress(administratorSlot, chains.operator),
    ]
  if (proxy === 'erc1822')
    return [
      setCode(address, artifact('TokenUups').runtime),
      setAddress(proxiableSlot, launchedImplementation),
    ]
  return [setCode(address, artifact(proxy === 'diamond' ? 'TokenDiamond' : 'TradedToken').runtime)]
}

const placeToken = (token: LaunchedToken): Step[] => {
  const { _name: name, _symbol: symbol } = artifact('TradedToken').slots
  const metadata = { ...token, decimals: launchedDecimals }
  return [...placeCode(token), ...setTokenMetadata(metadata, [name as number, symbol as number])]
}

/** A diamond has its functions from the first call on. */
const cutCalls = ({ address, proxy }: LaunchedToken): InnerCall[] => {
  if (proxy !== 'diamond') return []
  const selectors = artifact('TradedToken').abi.flatMap((item) =>
    item.type === 'function' ? [toFunctionSelector(item)] : [],
  )
  return [
    innerCall(address, artifact('TokenDiamond').abi, 'cut', { args: [launchedImplementation, selectors] }),
  ]
}

/** What the pool holds of the other token. */
const quoteSide = (chain: WorldChain, { against, dollars }: NonNullable<LaunchedToken['pool']>) => {
  const usdc = chains.usdcOf(chain)
  if (against === 'usdc') return { token: usdc, units: dollars * 10n ** 6n }
  const token = chain.tokens.find(({ kind }) => kind === 'wrapped') as WorldToken
  const price = parseUnits(priceBook().quote(token.symbol)?.usd ?? '1', 12)
  return { token, units: (dollars * 10n ** 12n * 10n ** BigInt(token.decimals)) / price }
}

const launchCalls = (chain: WorldChain, token: LaunchedToken): InnerCall[] => {
  const { abi } = artifact('TradedToken')
  const terms = {
    owner: token.isOwned ? chains.operator : zeroAddress,
    buyTaxBps: token.buyTaxBps ?? 0,
    sellTaxBps: token.sellTaxBps ?? 0,
    hasCooldown: token.hasCooldown ?? false,
  }
  const launch = (pool: string, pooledUnits: bigint) =>
    innerCall(token.address, abi, 'launch', { args: [pool, pooledUnits, chains.operator, heldUnits, terms] })
  const placed = cutCalls(token)
  if (!token.pool) return [...placed, launch(chains.burnAddress, 0n)]
  const factory = uniswapArtifact('v2-core/build/UniswapV2Factory.json')
  const pairCode = uniswapArtifact('v2-core/build/UniswapV2Pair.json')
  const quote = quoteSide(chain, token.pool)
  const pool = poolOf(chain, quote.token.address, token.address)
  const { abi: wrappedAbi } = uniswapArtifact('v2-periphery/build/WETH9.json')
  const fund =
    quote.token.kind === 'usdc'
      ? [innerCall(quote.token.address, artifact('LocalUsdc').abi, 'mint', { args: [pool, quote.units] })]
      : [
          innerCall(quote.token.address, wrappedAbi, 'deposit', { args: [], value: quote.units }),
          innerCall(quote.token.address, wrappedAbi, 'transfer', { args: [pool, quote.units] }),
        ]
  return [
    ...placed,
    innerCall(chain.factory, factory.abi, 'createPair', { args: [quote.token.address, token.address] }),
    ...fund,
    launch(pool, token.pool.dollars * unitsPerDollar),
    innerCall(pool, pairCode.abi, 'mint', { args: [chains.burnAddress] }),
  ]
}

/** The pools of more of them take more gas than one transaction may have. */
const launchesMax = Math.ceil(launchedTokens.length / 2)

/** Places the tokens of strangers and opens their pools. */
export const launchTokens = async (rpc: Rpc, chain: WorldChain): Promise<void> => {
  await rpc.batch([
    setCode(launchedImplementation, artifact('TradedToken').runtime),
    ...launchedTokens.flatMap(placeToken),
  ])
  const groups = [launchedTokens.slice(0, launchesMax), launchedTokens.slice(launchesMax)]
  await sendCalls(
    rpc,
    groups.map((tokens) => tokens.flatMap((token) => launchCalls(chain, token))),
  )
}
