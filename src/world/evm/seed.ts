import type { Abi, Hex } from 'viem'
import {
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  encodePacked,
  getCreate2Address,
  keccak256,
  numberToHex,
  pad,
  parseAbi,
  parseUnits,
  stringToHex,
} from 'viem'
import { priceBook } from '#world/prices/book.ts'
import { artifact, multicall3Bytecode, uniswapArtifact } from './artifact.ts'
import type { Address, WorldChain, WorldToken } from './chains.ts'
import * as chains from './chains.ts'
import type { Rpc } from './rpc.ts'
import { growthPerSecond } from './yield.ts'

type Step = { method: string; params: readonly unknown[] }
type InnerCall = { target: Address; allowFailure: false; value: bigint; callData: Hex }

const poolDollars = 20_000_000n
const vaultSeedUnits = 1_000_000n * 10n ** 6n
const initialYieldBps = 600
const burnAddress: Address = '0x000000000000000000000000000000000000dEaD'
const largeBalance = numberToHex(10n ** 30n)

const multicallAbi = parseAbi([
  'function aggregate3Value((address target, bool allowFailure, uint256 value, bytes callData)[] calls) payable',
])

const setCode = (address: Address, code: Hex): Step => ({ method: 'anvil_setCode', params: [address, code] })
const setStorage = (address: Address, slot: number, value: Hex): Step => ({
  method: 'anvil_setStorageAt',
  params: [address, numberToHex(slot, { size: 32 }), value],
})

/** Solidity stores text of up to 31 bytes in one slot: the bytes from the left, twice the length at the end. */
const shortText = (text: string): Hex => {
  const bytes = stringToHex(text)
  const length = (bytes.length - 2) / 2
  if (length > 31) throw new Error(`"${text}" is too long for one storage slot.`)
  return concat([pad(bytes, { dir: 'right', size: 31 }), numberToHex(length * 2, { size: 1 })])
}

const setTokenMetadata = (
  { address, name, symbol, decimals }: WorldToken,
  slots: [number, number, number],
): Step[] => [
  setStorage(address, slots[0], shortText(name)),
  setStorage(address, slots[1], shortText(symbol)),
  setStorage(address, slots[2], numberToHex(decimals, { size: 32 })),
]

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
    [chain.router, runConstructor(router, ['address', 'address'], [chain.factory, wrapped?.address])],
  ]
  if (chain.id !== chains.vaultChain) return placed
  return [
    ...placed,
    [chains.vault, runConstructor(artifact('Vault').bytecode, ['address', 'address'], vaultArguments)],
  ]
}

const innerCall = (
  target: Address,
  abi: Abi,
  functionName: string,
  args: unknown[],
  value = 0n,
): InnerCall => ({
  target,
  allowFailure: false,
  value,
  callData: encodeFunctionData({ abi, functionName, args }),
})

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
      const [first, second] = [dollar.address, token.address].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1))
      const salt = keccak256(encodePacked(['address', 'address'], [first as Address, second as Address]))
      const bytecodeHash = keccak256(pairCode.bytecode)
      const pair = getCreate2Address({ from: chain.factory, salt, bytecodeHash })
      const scale = 10n ** 12n
      const price = parseUnits(book.quote(token.symbol)?.usd ?? '1', 12)
      const units = (poolDollars * scale * 10n ** BigInt(token.decimals)) / price
      const fund =
        token.kind === 'wrapped'
          ? [
              innerCall(token.address, weth.abi, 'deposit', [], units),
              innerCall(token.address, weth.abi, 'transfer', [pair, units]),
            ]
          : [innerCall(token.address, tokenAbi, 'mint', [pair, units])]
      return [
        innerCall(chain.factory, factory.abi, 'createPair', [dollar.address, token.address]),
        innerCall(dollar.address, tokenAbi, 'mint', [pair, poolDollars * 10n ** 6n]),
        ...fund,
        innerCall(pair, pairCode.abi, 'mint', [burnAddress]),
      ]
    })
}

/** Shares without an owner, so that the first depositor never meets an empty vault. */
const vaultCalls = (chain: WorldChain): InnerCall[] => {
  if (chain.id !== chains.vaultChain) return []
  const usdc = chains.usdcOf(chain).address
  const { abi } = artifact('Vault')
  return [
    innerCall(usdc, artifact('LocalUsdc').abi, 'mint', [chains.multicall3, vaultSeedUnits]),
    innerCall(usdc, artifact('LocalUsdc').abi, 'approve', [chains.vault, vaultSeedUnits]),
    innerCall(chains.vault, abi, 'deposit', [vaultSeedUnits, burnAddress]),
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
    ...vaultStorage(chain),
    { method: 'anvil_setBalance', params: [chains.deployer, largeBalance] },
    { method: 'anvil_setBalance', params: [chains.faucetContract, largeBalance] },
  ])
  const built = constructedContracts(chain)
  const codes = (await rpc.batch(built.map(([, step]) => step))) as Hex[]
  await rpc.batch(built.map(([address], index) => setCode(address, codes[index] as Hex)))

  const calls = [...poolCalls(chain), ...vaultCalls(chain)]
  const data = encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3Value', args: [calls] })
  const value = numberToHex(calls.reduce((sum, call) => sum + call.value, 0n))
  const gas = numberToHex(29_000_000)
  const transaction = { from: chains.deployer, to: chains.multicall3, data, value, gas }
  await sendAndConfirm(rpc, transaction)
}

/** Sends from one of the node's own accounts. Under a fixed block time the receipt takes up to a block. */
export const sendAndConfirm = async (rpc: Rpc, transaction: Record<string, unknown>): Promise<Hex> => {
  const hash = (await rpc.call('eth_sendTransaction', [transaction])) as Hex
  const deadline = Date.now() + 10_000
  while (Date.now() < deadline) {
    const receipt = (await rpc.call('eth_getTransactionReceipt', [hash])) as { status: Hex } | null
    if (receipt?.status === '0x1') return hash
    if (receipt) throw new Error(`The world's own transaction ${hash} was reverted.`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`The world's own transaction ${hash} did not arrive in a block.`)
}
