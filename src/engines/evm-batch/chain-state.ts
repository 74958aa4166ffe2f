import { setTimeout as pause } from 'node:timers/promises'
import type { NonceSequences } from '#durable/nonces.ts'
import { backoffMs } from '#kernel/backoff.ts'
import { Fault } from '#kernel/fault.ts'
import type { Effect, TaskView, TxAttempt } from '#kernel/task.ts'
import type { Head, Receipt } from '#upstreams/evm/evm.ts'
import type { BatchTaskData } from './batch-rules.ts'
import type { EvmPort } from './evm-port.ts'
import type { GasBudget } from './gas-budget.ts'

/** Sends the transaction attempts of a batch and reads their receipts. */

/** A fast chain confirms within this time; the task is parked for a slower one. */
const inlineMs = 2_000
const pollBackoff = { firstMs: 15, maxMs: 250 }
/** Sends per step run. */
const sendsMax = 4
/** A node that reports the nonce as used may show the receipt a little later. */
const nonceUsedMs = 100

export type ReceiptState = {
  head: Head
  receipts: (Receipt | undefined)[]
  mined: Receipt | undefined
  final: boolean
}
export type ChainState = ReceiptState & SendResult
type SendResult = {
  /** The last send got no reply. */
  outcomeUnknown: boolean
  nonceUsed: boolean
}
export type ConfirmContext = {
  task: TaskView<BatchTaskData>
  effect: Effect
  port: EvmPort
  nonces: Pick<NonceSequences, 'take'>
  gasBudget: Pick<GasBudget, 'settle'>
  now: Date
}

/** Sends bytes that were never sent; looks up bytes that were, and sends them again only where absent. */
export async function pollUntilFinal(
  { effect, port: { chain } }: ConfirmContext,
  signal: AbortSignal,
): Promise<ChainState> {
  const newest = newestOf(effect)
  let sends = newest.status === 'prepared' ? 1 : 0
  let sent = sends > 0 ? await send(chain, newest.raw) : { outcomeUnknown: false, nonceUsed: false }
  const startedMs = performance.now()
  for (let polls = 0; ; polls += 1) {
    const waitMs = backoffMs(pollBackoff, polls)
    const isLate = signal.aborted || performance.now() - startedMs > inlineMs
    const reading = await tryReadChainState(effect, chain, { isLast: isLate })
    const chainState = reading && { ...reading, ...sent }
    if (chainState && (chainState.final || isLate)) return chainState
    // Our transaction is mined and not visible yet, or another one used the nonce: polling cannot distinguish them.
    if (chainState && !chainState.mined && sent.nonceUsed && performance.now() - startedMs > nonceUsedMs)
      return chainState
    if (!chainState) {
      await pause(waitMs, undefined, { signal }).catch(() => undefined)
      continue
    }
    if (!chainState.mined && (sends === 0 || (sent.outcomeUnknown && sends < sendsMax))) {
      sends += 1
      sent = await send(chain, newest.raw)
    }
    await pause(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

/** Retries a failed read while there is time; the last one throws. */
async function tryReadChainState(effect: Effect, chain: EvmPort['chain'], { isLast }: { isLast: boolean }) {
  try {
    return await readChainState(effect, chain)
  } catch (fault) {
    if (isLast || !(fault instanceof Fault)) throw fault
    return undefined
  }
}

/** A lost reply is not a failure: the outcome is unknown and is looked up. */
async function send(chain: EvmPort['chain'], raw: string): Promise<SendResult> {
  try {
    const { verdict } = await chain.sendRaw(raw)
    return { outcomeUnknown: false, nonceUsed: verdict === 'nonce_used' }
  } catch (fault) {
    if (fault instanceof Fault) return { outcomeUnknown: true, nonceUsed: false }
    throw fault
  }
}

export const newestOf = (effect: Effect): TxAttempt => {
  const newest = effect.txAttempts.at(-1)
  if (!newest) throw new Error(`effect ${effect.id} has no transaction attempt`)
  return newest
}

export async function readChainState(effect: Effect, chain: EvmPort['chain']): Promise<ReceiptState> {
  const { head, receipts } = await chain.receipts(effect.txAttempts.map((attempt) => attempt.externalId))
  // Attempts under several nonces can all be mined; at most one of them executed the batch.
  const mined =
    receipts.find((receipt) => receipt?.success) ?? receipts.find((receipt) => receipt !== undefined)
  const final = mined !== undefined && head.number - mined.block + 1n >= BigInt(chain.row.confirmations)
  return { head, receipts, mined, final }
}

export const finalBlockOf = ({ chain }: EvmPort, head: Head): bigint =>
  head.number - BigInt(chain.row.confirmations - 1)
