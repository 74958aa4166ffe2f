import {
  decodeFunctionData,
  encodeAbiParameters,
  encodeFunctionData,
  hashTypedData,
  pad,
  parseAbi,
  parseAbiParameters,
  toFunctionSelector,
} from 'viem/utils'
import { uuidOf } from '#kernel/id.ts'
import type { NamedExecution } from '#kernel/task/execution-id.ts'
import type { EvmBatch } from '#kernel/task/signer.ts'
import type { Hex } from './wire.ts'

/** Encodes and decodes the signed batches of Calibur, the code of the users' accounts, and the views of Multicall3. */

const zeroAddress = '0x0000000000000000000000000000000000000000'
const zeroWord: Hex = `0x${'0'.repeat(64)}`

const accountAbi = parseAbi([
  'struct Call { address to; uint256 value; bytes data; }',
  'struct BatchedCall { Call[] calls; bool revertOnFailure; }',
  'struct SignedBatchedCall { BatchedCall batchedCall; uint256 nonce; bytes32 keyHash; address executor; uint256 deadline; }',
  'function execute(SignedBatchedCall signedBatchedCall, bytes wrappedSignature) payable',
  'function getSeq(uint256 key) view returns (uint256)',
])

const executeSelector = toFunctionSelector(accountAbi[0])

const batchTypes = {
  SignedBatchedCall: [
    { name: 'batchedCall', type: 'BatchedCall' },
    { name: 'nonce', type: 'uint256' },
    { name: 'keyHash', type: 'bytes32' },
    { name: 'executor', type: 'address' },
    { name: 'deadline', type: 'uint256' },
  ],
  BatchedCall: [
    { name: 'calls', type: 'Call[]' },
    { name: 'revertOnFailure', type: 'bool' },
  ],
  Call: [
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'data', type: 'bytes' },
  ],
} as const

const signedCallOf = (batch: EvmBatch) => ({
  batchedCall: {
    calls: batch.calls.map((call) => ({ to: call.to as Hex, value: call.value, data: call.data as Hex })),
    revertOnFailure: true,
  },
  nonce: batch.nonce,
  // A key hash of zero stands for the account's own key.
  keyHash: zeroWord,
  executor: (batch.executor ?? zeroAddress) as Hex,
  deadline: BigInt(batch.deadlineSeconds),
})

/** Returns the typed data that the account's key signs; the salt names the implementation, not the account. */
export const batchTypedData = (batch: EvmBatch) => ({
  domain: {
    name: 'Calibur',
    version: '1.0.0',
    chainId: Number(batch.chainId),
    verifyingContract: batch.account as Hex,
    salt: pad(batch.delegate as Hex, { size: 32 }),
  },
  types: batchTypes,
  primaryType: 'SignedBatchedCall' as const,
  message: signedCallOf(batch),
})

export const batchHash = (batch: EvmBatch): Hex => hashTypedData(batchTypedData(batch))

export const executeData = (batch: EvmBatch, signature: string): Hex =>
  encodeFunctionData({
    abi: accountAbi,
    functionName: 'execute',
    args: [
      signedCallOf(batch),
      // The second part is data for hooks, of which the account's own key has none.
      encodeAbiParameters(parseAbiParameters('bytes, bytes'), [signature as Hex, '0x']),
    ],
  })

export const sequenceData = (key: bigint): Hex =>
  encodeFunctionData({ abi: accountAbi, functionName: 'getSeq', args: [key] })

/** Each execution has its own nonce key, so that an account's tasks never queue; its batches count from 0. */
export const nonceOf = (executionId: string, sequence = 0): bigint =>
  (nonceKeyOf(executionId) << 64n) + BigInt(sequence)
export const nonceKeyOf = (executionId: string): bigint => BigInt(`0x${executionId.replaceAll('-', '')}`)

/** Returns the execution and sequence of a batch nonce, or undefined if the gateway did not make the nonce. */
export function executionOf(nonce: bigint): NamedExecution | undefined {
  const hex = (nonce >> 64n).toString(16).padStart(32, '0')
  if (hex.length > 32) return undefined
  return { executionId: uuidOf(hex), sequence: Number(BigInt.asUintN(64, nonce)) }
}

/** Returns the batch that a transaction to an account runs, if any. The `data` of its calls is in lower case. */
export type ExecutedBatch = Pick<EvmBatch, 'calls' | 'nonce' | 'deadlineSeconds'> & { executor: string }
export function executedBatchIn(input: string): ExecutedBatch | undefined {
  if (!input.toLowerCase().startsWith(executeSelector)) return undefined
  try {
    const { args } = decodeFunctionData({ abi: accountAbi, data: input as Hex })
    const [signed] = args as readonly [ReturnType<typeof signedCallOf>, Hex]
    return {
      calls: signed.batchedCall.calls.map(({ to, value, data }) => ({ to, value, data })),
      nonce: signed.nonce,
      deadlineSeconds: Number(signed.deadline),
      executor: signed.executor,
    }
  } catch {
    return undefined
  }
}
