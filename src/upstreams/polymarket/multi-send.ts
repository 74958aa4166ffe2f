import { encodeFunctionData, encodePacked, parseAbi, size } from 'viem/utils'
import type { WalletCall } from '#kernel/money/prediction-actions.ts'
import { contracts, type Hex } from './contracts.ts'

/** A Safe makes one call itself, and several through the contract that it calls by delegation. */

export type SafeTransaction = { to: string; value: bigint; data: Hex; operation: 0 | 1 }

const multiSendAbi = parseAbi(['function multiSend(bytes transactions)'])

const packed = ({ to, value, data }: WalletCall): Hex =>
  encodePacked(
    ['uint8', 'address', 'uint256', 'uint256', 'bytes'],
    [0, to as Hex, value, BigInt(size(data as Hex)), data as Hex],
  )

export function safeTransactionOf(calls: readonly WalletCall[]): SafeTransaction {
  const [first, second] = calls
  if (!first) throw new Error('a transaction of a Safe has at least one call')
  if (!second) return { to: first.to, value: first.value, data: first.data as Hex, operation: 0 }
  const content = `0x${calls.map((call) => packed(call).slice(2)).join('')}` as Hex
  const data = encodeFunctionData({ abi: multiSendAbi, functionName: 'multiSend', args: [content] })
  return { to: contracts.multiSend, value: 0n, data, operation: 1 }
}
