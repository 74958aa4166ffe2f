import { concat, encodeAbiParameters, type Hex, numberToHex, parseUnits } from 'viem'
import { placeContracts } from '#world/polymarket/chain/place.ts'
import { priceBook } from '#world/prices/book.ts'
import { artifact, multicall3Bytecode, uniswapArtifact } from './artifact.ts'
import type { Address, WorldChain, WorldToken } from './chains.ts'
import * as chains from './chains.ts'
import { launchTokens } from './launch-tokens.ts'
import type { Rpc } from './rpc.ts'
import {
  type InnerCall,
  innerCall,
  poolOf,
  type Step,
  sendCalls,
  setCode,
  setStorage,
  setTokenMetadata,
} from './seed-steps.ts'
import { growthPerSecond } from './yield.ts'

const poolDollars = 20_000_000n
const vaultSeedUnits = 1_000_000n * 10n ** 6n
const initialYieldBps = 600
const largeBalance = numberToHex(10n ** 30n)

const placeToken = (token: WorldToken): Step[] => {
  if (token.kind === 'usdc') return [setCode(token.address, artifact('LocalUsdc').runtime)]
  if (token.kind === 'wrapped') {
    const { runtime } = uniswapArtifact('v2-periphery/build/WETH9.json')
    // WETH9 declares name, symbol and decimals first.
    return [setCode(token.address, runtime), ...setTokenMetadata(token, [0, 1, 2])]
  }
  const { runtime, slots } = artifact('Token')
  const { _name: name, _symbol: symbol, _decimals: decimals } = slots as Record<string, number>
  return [
    setCode(token.address, runtime),
    ...setTokenMetadata(token, [name as number, symbol as number, decimals as number]),
  ]
}

/** Runs a constructor without deploying: returns the runtime code with its immutables set. */
const runConstructor = (bytecode: Hex, types: readonly string[], values: readonly unknown[]): Step => {
  const parameters = types.map((type) => ({ type }))
  const data = concat([bytecode, encodeAbiParameters(parameters, values as never)])
  return {
    method: 'eth_call',
    params: [{ from: chains.deployer, data, gas: numberToHex(25_000_000) }, 'latest'],
  }
}

const constructedContracts = (chain: WorldChain): [Address, Step][] => {
  const wrapped = chain.tokens.find(({ kind }) => kind === 'wrapped')
  const router = uniswapArtifact('v2-periphery/build/UniswapV2Router02.json').bytecode
  const vaultArguments = [chains.usdcOf(chain).address, chains.operator]
  const placed: [Address, Step][] = [
    [chains.multicall3, runConstructor(multicall3Bytecode(), [], [])],
    [chains.executor, runConstructor(artifact('Executor').bytecode, ['address'], [chains.executor])],
    [chains.till, runConstructor(artifact('Till').bytecode, ['address'], [chains.operator])],
    [chain.router, runConstructor(router, ['address', 'address'], [chain.factory, wrapped?.address])],
  ]
  if (chain.id !== chains.vaultChain) return placed
  return [
    ...placed,
    [chains.vault, runConstructor(artifact('Vault').bytecode, ['address', 'address'], vaultArguments)],
  ]
}

/** One deep pool against USDC for every other token, at the opening prices of the world. */
const poolCalls = (chain: WorldChain): InnerCall[] => {
  const factory = uniswapArtifact('v2-core/build/UniswapV2Factory.json')
  const pairCode = uniswapArtifact('v2-core/build/UniswapV2Pair.json')
  const weth = uniswapArtifact('v2-periphery/build/WETH9.json')
  const { abi: tokenAbi } = artifact('Token')
  const dollar = chains.usdcOf(chain)
  const book = priceBook()
  return chain.tokens
    .filter((token) => token !== dollar)
    .flatMap((token) => {
      const pair = poolOf(chain, dollar.address, token.address)
      const scale = 10n ** 12n
      const price = parseUnits(book.quote(token.symbol)?.usd ?? '1', 12)
      const units = (poolDollars * scale * 10n ** BigInt(token.decimals)) / price
      const fund =
        token.kind === 'wrapped'
          ? [
              innerCall(token.address, weth.abi, 'deposit', { args: [], value: units }),
              innerCall(token.address, weth.abi, 'transfer', { args: [pair, units] }),
            ]
          : [innerCall(token.address, tokenAbi, 'mint', { args: [pair, units] })]
      return [
        innerCall(chain.factory, factory.abi, 'createPair', { args: [dollar.address, token.address] }),
        innerCall(dollar.address, tokenAbi, 'mint', { args: [pair, poolDollars * 10n ** 6n] }),
        ...fund,
        innerCall(pair, pairCode.abi, 'mint', { args: [chains.burnAddress] }),
      ]
    })
}

/** Shares without an owner, so that the first depositor never meets an empty vault. */
const vaultCalls = (chain: WorldChain): InnerCall[] => {
  if (chain.id !== chains.vaultChain) return []
  const usdc = chains.usdcOf(chain).address
  const { abi } = artifact('Vault')
  return [
    innerCall(usdc, artifact('LocalUsdc').abi, 'mint', { args: [chains.multicall3, vaultSeedUnits] }),
    innerCall(usdc, artifact('LocalUsdc').abi, 'approve', { args: [chains.vault, vaultSeedUnits] }),
    innerCall(chains.vault, abi, 'deposit', { args: [vaultSeedUnits, chains.burnAddress] }),
  ]
}

const vaultStorage = (chain: WorldChain): Step[] => {
  if (chain.id !== chains.vaultChain) return []
  const slot = artifact('Vault').slots.growthPerSecond as number
  return [setStorage(chains.vault, slot, numberToHex(growthPerSecond(initialYieldBps), { size: 32 }))]
}

/** Seeds a new node: code first, then everything else in one transaction. */
export const seedChain = async (rpc: Rpc, chain: WorldChain): Promise<void> => {
  await rpc.batch([
    ...chain.tokens.flatMap(placeToken),
    setCode(chain.factory, uniswapArtifact('v2-core/build/UniswapV2Factory.json').runtime),
    setCode(chains.faucetContract, artifact('Faucet').runtime),
    setCode(chains.depository, artifact('Depository').runtime),
    setCode(chains.lifiDiamond, artifact('LifiDiamond').runtime),
    ...Object.values(chains.relayRouters).flatMap(({ router, approvalProxy }) => [
      setCode(router, artifact('RelayRouter').runtime),
      setCode(approvalProxy, artifact('RelayApprovalProxy').runtime),
    ]),
    ...vaultStorage(chain),
    { method: 'anvil_setBalance', params: [chains.deployer, largeBalance] },
    { method: 'anvil_setBalance', params: [chains.faucetContract, largeBalance] },
  ])
  const built = constructedContracts(chain)
  const codes = (await rpc.batch(built.map(([, step]) => step))) as Hex[]
  await rpc.batch(built.map(([address], index) => setCode(address, codes[index] as Hex)))

  const calls = [...poolCalls(chain), ...vaultCalls(chain)]
  await sendCalls(rpc, [calls])
  await launchTokens(rpc, chain)
  if (chain.id === chains.predictionChain) await placeContracts(rpc)
}
