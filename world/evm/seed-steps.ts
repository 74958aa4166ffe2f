import {
  type Abi,
  concat,
  encodeFunctionData,
  encodePacked,
  getCreate2Address,
  type Hex,
  keccak256,
  numberToHex,
  pad,
  parseAbi,
  stringToHex,
} from 'viem'
import { uniswapArtifact } from './artifact.ts'
import type { Address, WorldChain } from './chains.ts'
import * as chains from './chains.ts'
import type { Rpc } from './rpc.ts'

export type Step = { method: string; params: readonly unknown[] }
export type InnerCall = { target: Address; allowFailure: false; value: bigint; callData: Hex }

type Metadata = { address: Address; name: string; symbol: string; decimals: number }

const multicallAbi = parseAbi([
  'function aggregate3Value((address target, bool allowFailure, uint256 value, bytes callData)[] calls) payable',
])

export const setCode = (address: Address, code: Hex): Step => ({
  method: 'anvil_setCode',
  params: [address, code],
})
export const setStorage = (address: Address, slot: number, value: Hex): Step => ({
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

export const setTokenMetadata = (
  { address, name, symbol, decimals }: Metadata,
  /** The slots of name, symbol and, where it is stored, decimals. */
  slots: readonly number[],
): Step[] => {
  const values = [shortText(name), shortText(symbol), numberToHex(decimals, { size: 32 })]
  return slots.map((slot, index) => setStorage(address, slot, values[index] as Hex))
}

export const innerCall = (
  target: Address,
  abi: Abi,
  functionName: string,
  { args, value = 0n }: { args: unknown[]; value?: bigint },
): InnerCall => ({
  target,
  allowFailure: false,
  value,
  callData: encodeFunctionData({ abi, functionName, args }),
})

/** Where the factory creates the pool of two tokens. */
export const poolOf = (chain: WorldChain, a: Address, b: Address): Address => {
  const pairCode = uniswapArtifact('v2-core/build/UniswapV2Pair.json')
  const [first, second] = [a, b].sort((left, right) => (BigInt(left) < BigInt(right) ? -1 : 1))
  const salt = keccak256(encodePacked(['address', 'address'], [first as Address, second as Address]))
  return getCreate2Address({ from: chain.factory, salt, bytecodeHash: keccak256(pairCode.bytecode) })
}

/** Makes the calls of each group in one transaction, which has as much gas as the chain allows. */
export const sendCalls = async (rpc: Rpc, groups: readonly (readonly InnerCall[])[]): Promise<void> => {
  const hashes: Hex[] = []
  for (const calls of groups) {
    const data = encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3Value', args: [calls] })
    const value = numberToHex(calls.reduce((sum, call) => sum + call.value, 0n))
    const gas = numberToHex(chains.transactionGasMax)
    hashes.push(await send(rpc, { from: chains.deployer, to: chains.multicall3, data, value, gas }))
  }
  for (const hash of hashes) await confirm(rpc, hash)
}

const send = async (rpc: Rpc, transaction: Record<string, unknown>): Promise<Hex> =>
  (await rpc.call('eth_sendTransaction', [transaction])) as Hex

/** Under a fixed block time the receipt takes up to a block, and on a machine under load far longer. */
const receiptMsMax = 60_000
const confirm = async (rpc: Rpc, hash: Hex): Promise<void> => {
  const deadline = Date.now() + receiptMsMax
  while (Date.now() < deadline) {
    const receipt = (await rpc.call('eth_getTransactionReceipt', [hash])) as { status: Hex } | null
    if (receipt?.status === '0x1') return
    if (receipt) throw new Error(`The world's own transaction ${hash} was reverted.`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`The world's own transaction ${hash} did not arrive in a block.`)
}

/** Sends from one of the node's own accounts. */
export const sendAndConfirm = async (rpc: Rpc, transaction: Record<string, unknown>): Promise<Hex> => {
  const hash = await send(rpc, transaction)
  await confirm(rpc, hash)
  return hash
}
