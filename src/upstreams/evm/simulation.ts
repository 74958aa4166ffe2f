import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { RpcAnswer } from '#kernel/wire/json-rpc.ts'
import { resultsOf, type ViewResult } from './multicall-abi.ts'
import { revertReason } from './revert-reason.ts'
import { type Hex, parseHex, parseQuantity } from './wire.ts'

/** `block` is the block on whose state the calls ran; it is undefined if the calls could not read its number. */
export type Simulation = { block: bigint | undefined } & (
  | { ok: true; returns: Hex[]; gas: bigint }
  | { ok: false; failedCall: number; reason: string }
)

/** What a batch costs besides its calls: the authorization, the delegate's own work, and the signature check. */
const batchOverheadGas = 150_000n
const gasPerCallUnmeasured = 400_000n

/** The most that a transaction without code costs (EIP-7623); a node whose estimate is lower ran none of the calls. */
const emptyTransactionGas = (data: Hex): bigint =>
  Buffer.from(data.slice(2), 'hex').reduce((gas, byte) => gas + (byte === 0 ? 10n : 40n), 21_000n)

const outOfGas = /out ?of ?gas|gas required exceeds/i
const isOutOfGas = (answer: RpcAnswer): boolean => 'error' in answer && outOfGas.test(answer.error.message)

export type FailedSimulation = Extract<Simulation, { ok: false }>

export const needsTooMuchGas = (
  { displayName }: Pick<EvmChainRow, 'displayName'>,
  block: bigint | undefined,
): FailedSimulation => ({
  ok: false,
  block,
  failedCall: 0,
  reason: `the calls need more gas than one transaction on ${displayName} may use`,
})

/** The error codes of a final refusal: invalid request, unknown method, invalid params, and a revert (code 3). */
const finalCodes: readonly number[] = [-32600, -32601, -32602, 3]
/** Recognises errors that may pass: a block that only this node lacks, a rate limit, or a timeout. */
const isTransient = (message: string): boolean =>
  /header not found|unknown block|block not found|outofrange|missing trie node|rate limit|too many requests|timeout/i.test(
    message,
  )

/**
 * Each provider words its limits and lags differently, so a refusal is final only if it is a known refusal of the call
 * itself.
 */
const isFinalRefusal = (code: number, message: string): boolean =>
  !isTransient(message) && (finalCodes.includes(code) || /revert|insufficient/i.test(message))

export function resultOf(row: EvmChainRow, answer: RpcAnswer): unknown {
  if ('result' in answer) return answer.result
  const { code, message } = answer.error
  throw new Fault(
    isFinalRefusal(code, message) ? 'upstream_rejected' : 'unavailable',
    `The ${row.displayName} node refused: ${message}`,
  )
}

export const wordOf = ({ success, data }: ViewResult): bigint | undefined =>
  success && data.length >= 66 ? BigInt(data.slice(0, 66)) : undefined

/**
 * Returns the gas of the calls. A node that ignores the code override estimates a transaction to an account without
 * code; each call then counts with a fixed gas. `data` is the calldata of the estimated transaction.
 */
function measuredGas(calls: number, { answer, data }: { answer: RpcAnswer; data: Hex }): bigint {
  const gas = 'result' in answer ? parseQuantity(answer.result) : 0n
  const emptyGas = emptyTransactionGas(data)
  return gas > emptyGas ? gas : BigInt(calls) * gasPerCallUnmeasured + emptyGas
}

export function simulationOf(
  row: EvmChainRow,
  calls: number,
  tried: RpcAnswer,
  measured: { answer: RpcAnswer; data: Hex },
): Simulation {
  if (isOutOfGas(tried)) return needsTooMuchGas(row, undefined)
  if ('error' in tried && !/revert/i.test(tried.error.message)) resultOf(row, tried)
  if ('error' in tried) {
    const data = typeof tried.error.data === 'string' ? (tried.error.data as Hex) : '0x'
    return { ok: false, block: undefined, failedCall: 0, reason: revertReason(data) }
  }
  const all = resultsOf(parseHex(tried.result))
  const results = all.slice(0, calls)
  const seen = all[calls] && wordOf(all[calls])
  const block = row.callsSeeBlockNumber ? seen : undefined
  const failedCall = results.findIndex((result) => !result.success)
  if (failedCall >= 0)
    return { ok: false, block, failedCall, reason: revertReason(results[failedCall]!.data) }
  const callsGas = measuredGas(calls, measured)
  if (isOutOfGas(measured.answer) || callsGas > row.gas.callsMax) return needsTooMuchGas(row, block)
  return {
    ok: true,
    block,
    returns: results.map((result) => result.data),
    gas: (callsGas * 13n) / 10n + batchOverheadGas,
  }
}
