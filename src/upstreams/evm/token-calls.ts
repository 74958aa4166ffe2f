import {
  decodeEventLog,
  decodeFunctionData,
  encodeEventTopics,
  encodeFunctionData,
  parseAbi,
} from 'viem/utils'
import type { DecodedCall, EvmCall } from '#kernel/task/signer.ts'
import { taskOfWord } from './till-contract.ts'
import type { Hex, Log } from './wire.ts'

/** The calls of tokens, vaults and the till that custody can read, and the tokens' own views. */

const abi = parseAbi([
  'function approve(address spender, uint256 amount) returns (bool)',
  'function transfer(address to, uint256 amount) returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function withdraw(uint256 assets, address receiver, address owner) returns (uint256)',
  'function redeem(uint256 shares, address receiver, address owner) returns (uint256)',
  'function pay(bytes32 task) payable',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

export const approveData = (spender: string, amountUnits: bigint): Hex =>
  encodeFunctionData({ abi, functionName: 'approve', args: [spender as Hex, amountUnits] })

export const transferData = (to: string, amountUnits: bigint): Hex =>
  encodeFunctionData({ abi, functionName: 'transfer', args: [to as Hex, amountUnits] })

export const balanceData = (owner: string): Hex =>
  encodeFunctionData({ abi, functionName: 'balanceOf', args: [owner as Hex] })

/**
 * Decodes a call for custody; undefined for calls that custody does not know, and for calldata with extra bytes.
 */
export function readCall({ to, data, value }: EvmCall): DecodedCall | undefined {
  if (data === '0x') return value > 0n ? { name: 'send', to, amountUnits: value } : undefined
  const decoded = decode(data as Hex)
  if (!decoded) return undefined
  switch (decoded.functionName) {
    case 'approve':
      return { name: 'approve', token: to, spender: decoded.args[0], amountUnits: decoded.args[1] }
    case 'transfer':
      return { name: 'transfer', token: to, to: decoded.args[0], amountUnits: decoded.args[1] }
    case 'deposit':
      return { name: 'deposit', vault: to, assetsUnits: decoded.args[0], receiver: decoded.args[1] }
    case 'withdraw': {
      const [assetsUnits, receiver, owner] = decoded.args
      return { name: 'withdraw', vault: to, assetsUnits, receiver, owner }
    }
    case 'redeem': {
      const [sharesUnits, receiver, owner] = decoded.args
      return { name: 'redeem', vault: to, sharesUnits, receiver, owner }
    }
    case 'pay': {
      const taskId = taskOfWord(decoded.args[0])
      return taskId === undefined ? undefined : { name: 'pay', till: to, taskId, valueUnits: value }
    }
    default:
      return undefined
  }
}

function decode(data: Hex) {
  try {
    const decoded = decodeFunctionData({ abi, data })
    // Contracts ignore bytes after the arguments, which could hide something from a reader.
    const again = encodeFunctionData({ abi, ...decoded } as Parameters<typeof encodeFunctionData>[0])
    return again.toLowerCase() === data.toLowerCase() ? decoded : undefined
  } catch {
    return undefined
  }
}

export const incomingTransferTopics = (owner: string) =>
  encodeEventTopics({ abi, eventName: 'Transfer', args: { to: owner as Hex } })

/** `index` is the index of the event in its block. */
export type TransferLog = { token: string; from: string; to: string; amountUnits: bigint; index: number }

export function transfersOf(logs: readonly Log[]): TransferLog[] {
  return logs.flatMap((log) => {
    try {
      const { args } = decodeEventLog({
        abi,
        eventName: 'Transfer',
        topics: log.topics as [Hex, ...Hex[]],
        data: log.data,
      })
      const { from, to, value } = args
      return [
        {
          token: log.address,
          from: from.toLowerCase(),
          to: to.toLowerCase(),
          amountUnits: value,
          index: log.index,
        },
      ]
    } catch {
      return []
    }
  })
}
