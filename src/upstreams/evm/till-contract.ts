import { decodeEventLog, encodeEventTopics, encodeFunctionData, parseAbi } from 'viem/utils'
import type { FoundLog, Hex, Log } from './wire.ts'

const tillAbi = parseAbi([
  'function pay(bytes32 task) payable',
  'function isTill() pure returns (bool)',
  'event Paid(address payer, uint256 amount, bytes32 task)',
])

const zeroHalf = '0'.repeat(32)
/** Returns a task id, which is a UUID, in the right half of a word. */
export const taskWord = (taskId: string): Hex => `0x${zeroHalf}${taskId.replaceAll('-', '')}`

/** Returns the task id that a word holds in its right half, or undefined if the word is not that of a task. */
export function taskOfWord(word: string): string | undefined {
  const hex = word.toLowerCase().slice(2)
  if (!hex.startsWith(zeroHalf) || /^0+$/.test(hex)) return undefined
  return hex.slice(32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

export const payData = (taskId: string): Hex =>
  encodeFunctionData({ abi: tillAbi, functionName: 'pay', args: [taskWord(taskId)] })

export const isTillData: Hex = encodeFunctionData({ abi: tillAbi, functionName: 'isTill' })
export const isTrueWord = (data: string): boolean => /^0x0{63}1$/.test(data)

export const paidTopics = () => encodeEventTopics({ abi: tillAbi, eventName: 'Paid' })

export type Payment = { payer: string; amountUnits: bigint; task: string; index: number }

export function paymentsOf(logs: readonly Log[], till: string): Payment[] {
  return logs.flatMap((log) => {
    if (log.address.toLowerCase() !== till.toLowerCase()) return []
    try {
      const { args } = decodeEventLog({
        abi: tillAbi,
        eventName: 'Paid',
        topics: log.topics as [Hex, ...Hex[]],
        data: log.data,
      })
      const { payer, amount, task } = args
      return [{ payer: payer.toLowerCase(), amountUnits: amount, task, index: log.index }]
    } catch {
      return []
    }
  })
}

export type FoundPayment = Payment & Pick<FoundLog, 'txHash' | 'block'>

export const foundPaymentsOf = (logs: readonly FoundLog[], till: string): FoundPayment[] =>
  logs.flatMap((log) =>
    paymentsOf([log], till).map((payment) => ({ ...payment, txHash: log.txHash, block: log.block })),
  )
