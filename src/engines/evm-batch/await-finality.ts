import { setTimeout as pause } from 'node:timers/promises'
import type { NonceSequences } from '#durable/run/nonces.ts'
import { backoffMs } from '#kernel/async/backoff.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { EffectNames } from '#kernel/task/effect-steps.ts'
import type { Effect, JsonObject, TaskView, TxAttempt } from '#kernel/task/task.ts'
import type { Head, Receipt } from '#upstreams/evm/evm.ts'
import type { ReceiptReading } from '#upstreams/evm/receipt-watcher.ts'
import type { BatchTaskData } from './batch-plan.ts'
import type { EvmPort } from './evm-chain-parts.ts'
import type { GasBudget } from './user-gas-budget.ts'

/** How long a step waits for a batch to be final, as on a fast chain; after that the task is parked. */
const inlineMs = 2_000
const slowReplyMs = 4_000
const resendBackoff = { firstMs: 15, maxMs: 250 }
/** The most sends of a transaction in one run of a step. */
const sendsMax = 4
/** A node that reports a nonce as used may show the receipt of its transaction only after this time. */
const nonceUsedMs = 100

export type ReceiptState = {
  head: Head
  receipts: (Receipt | undefined)[]
  mined: Receipt | undefined
  final: boolean
}
export type ChainState = ReceiptState & SendResult
type SendResult = {
  outcomeUnknown: boolean
  nonceUsed: boolean
  isInvalid: boolean
}
export type ConfirmContext<Names extends string> = {
  task: TaskView<BatchTaskData>
  effect: Effect
  port: EvmPort
  nonces: Pick<NonceSequences, 'take'>
  gasBudget: Pick<GasBudget, 'settle'>
  steps: EffectNames<Names>
  now: Date
  /** The monotonic time, for measuring waits; `now` is the time of the task. */
  nowMs: () => number
}

/** Sends bytes that were never sent. Bytes that were sent are looked up, and sent again only if they are absent. */
export async function awaitFinality(
  { effect, port: { chain, watcher, broadcasts }, nowMs }: ConfirmContext<string>,
  signal: AbortSignal,
): Promise<ChainState> {
  const newest = newestOf(effect)
  let sends = newest.status === 'prepared' ? 1 : 0
  let sent = sends > 0 ? await send(broadcasts, newest.raw) : notSent
  const startedMs = nowMs()
  const elapsedMs = () => nowMs() - startedMs
  const sleep = (ms: number) => pause(ms, undefined, { signal }).catch(() => undefined)
  using watch = watcher.watch(hashesOf(effect), signal)
  let state: ReceiptState | undefined
  for (let isFresh = true; ; ) {
    // The first reply of the node may take longer than the wait for finality, so it has a timeout of its own.
    const timeoutMs = state || elapsedMs() < inlineMs ? Math.max(0, inlineMs - elapsedMs()) : slowReplyMs
    const reading = await watch.next({ timeoutMs, isFresh })
    isFresh = false
    if (reading) state = receiptStateOf(reading, chain.row)
    const isLate = signal.aborted || elapsedMs() >= inlineMs
    if (!state) {
      if (signal.aborted || elapsedMs() > inlineMs + slowReplyMs)
        throw new Fault('upstream_timeout', `The ${chain.row.displayName} node is slow`)
      continue
    }
    if (state.final || signal.aborted) return { ...state, ...sent }
    // Bytes that are absent at the node are sent once even after a slow reply: higher fees are considered only if the
    // node answers the send.
    const isSendDue = sends === 0 && !state.mined
    if (isLate && !isSendDue) return { ...state, ...sent }
    if (state.mined) continue
    if (sent.isInvalid) return { ...state, ...sent }
    // Our transaction is mined and not visible yet, or another one used the nonce: a poll cannot distinguish them.
    if (sent.nonceUsed) {
      if (elapsedMs() > nonceUsedMs) return { ...state, ...sent }
      await sleep(nonceUsedMs)
      isFresh = true
    } else if (sends === 0 || (sent.outcomeUnknown && sends < sendsMax)) {
      sends += 1
      sent = await send(broadcasts, newest.raw)
      if (isLate) return { ...state, ...sent }
      if (sent.outcomeUnknown) await sleep(backoffMs(resendBackoff, sends))
      isFresh = true
    }
  }
}

const notSent: SendResult = { outcomeUnknown: false, nonceUsed: false, isInvalid: false }

/** Sends bytes to the node. A lost reply is no failure: the outcome is unknown, and is looked up. */
async function send(broadcasts: EvmPort['broadcasts'], raw: string): Promise<SendResult> {
  try {
    const { verdict } = await broadcasts.send(raw)
    return { outcomeUnknown: false, nonceUsed: verdict === 'nonce_used', isInvalid: verdict === 'invalid' }
  } catch (fault) {
    if (fault instanceof Fault) return { ...notSent, outcomeUnknown: true }
    throw fault
  }
}

export const newestOf = (effect: Effect): TxAttempt => {
  const newest = effect.txAttempts.at(-1)
  if (!newest) throw new Error(`effect ${effect.id} has no transaction attempt`)
  return newest
}

/** Returns how many batches of the task the account had executed before the batch of this effect. */
export const sequenceOf = ({ intent }: Effect): bigint =>
  BigInt.asUintN(64, BigInt(String((intent.batch as JsonObject).nonce)))

export const hashesOf = (effect: Effect): string[] => effect.txAttempts.map((attempt) => attempt.externalId)

export const readChainState = async (effect: Effect, chain: EvmPort['chain']): Promise<ReceiptState> =>
  receiptStateOf(await chain.receipts(hashesOf(effect)), chain.row)

export function receiptStateOf(
  { head, receipts }: ReceiptReading,
  { confirmations }: Pick<EvmChainRow, 'confirmations'>,
): ReceiptState {
  // Attempts under several nonces can all be mined; at most one of them executed the batch.
  const mined =
    receipts.find((receipt) => receipt?.success) ?? receipts.find((receipt) => receipt !== undefined)
  const final = mined !== undefined && head.number - mined.block + 1n >= BigInt(confirmations)
  return { head, receipts, mined, final }
}

export const finalBlockOf = ({ chain }: EvmPort, head: Head): bigint =>
  head.number - BigInt(chain.row.confirmations - 1)
