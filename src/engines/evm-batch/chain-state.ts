import { setTimeout as pause } from 'node:timers/promises'
import type { NonceSequences } from '#durable/nonces.ts'
import { Fault } from '#kernel/fault.ts'
import type { Effect, TaskView, TxAttempt } from '#kernel/task.ts'
import type { Head, Receipt } from '#upstreams/evm/evm.ts'
import type { BatchRules } from './batch-rules.ts'
import type { EvmPort } from './evm-port.ts'
import type { GasBudget } from './gas-budget.ts'

/** Sends what carries a batch, and looks up what the chain shows of it. */

/** A quick chain answers within this; a slower one is asked again later. */
const inlineMs = 2_000
const pollFirstMs = 15
const pollMaxMs = 250
/** Within one look; after it the waits between looks begin. */
const sendsMax = 4
/** A node that calls the number used may show the receipt a moment later. */
const nonceUsedMs = 100

export type ChainState = {
  head: Head
  receipts: (Receipt | undefined)[]
  mined: Receipt | undefined
  final: boolean
  /** The last sending got no answer. */
  outcomeUnknown: boolean
}
/** What became of the last sending. */
type SendResult = { outcomeUnknown: boolean; nonceUsed: boolean }
export type ConfirmContext = {
  task: TaskView
  effect: Effect
  port: EvmPort
  nonces: Pick<NonceSequences, 'take'>
  gasBudget: Pick<GasBudget, 'settle'>
  rules: BatchRules
  now: Date
}

/** Bytes that were never sent go out first; bytes that were are looked up first, and sent again where absent. */
export async function pollUntilFinal(
  { effect, port: { chain } }: ConfirmContext,
  signal: AbortSignal,
): Promise<ChainState> {
  const newest = newestOf(effect)
  let sends = newest.status === 'prepared' ? 1 : 0
  let sent = sends > 0 ? await send(chain, newest.raw) : { outcomeUnknown: false, nonceUsed: false }
  const startedMs = performance.now()
  for (let waitMs = pollFirstMs; ; waitMs = Math.min(waitMs * 2, pollMaxMs)) {
    const isLate = signal.aborted || performance.now() - startedMs > inlineMs
    const reading = await tryReadChainState(effect, chain, isLate)
    const chainState = reading && { ...reading, outcomeUnknown: sent.outcomeUnknown }
    if (chainState && (chainState.final || isLate)) return chainState
    // Either our bytes are mined and not shown yet, or others took the number: waiting here tells neither.
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

/** A look-up that gets no answer is repeated while there is time; the last one tells the failure. */
async function tryReadChainState(effect: Effect, chain: EvmPort['chain'], last: boolean) {
  try {
    return await readChainState(effect, chain)
  } catch (fault) {
    if (last || !(fault instanceof Fault)) throw fault
    return undefined
  }
}

/** `doubt` where nobody can say what became of the bytes. A lost reply is no failure: the look-up tells. */
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
  if (!newest) throw new Error(`effect ${effect.id} has nothing to carry it`)
  return newest
}

export async function readChainState(
  effect: Effect,
  chain: EvmPort['chain'],
): Promise<Omit<ChainState, 'outcomeUnknown'>> {
  const { head, receipts } = await chain.receipts(effect.txAttempts.map((attempt) => attempt.externalId))
  // Under several numbers more than one can be mined; at most one of them ran the batch.
  const mined =
    receipts.find((receipt) => receipt?.success) ?? receipts.find((receipt) => receipt !== undefined)
  const final = mined !== undefined && head.number - mined.block + 1n >= BigInt(chain.row.confirmations)
  return { head, receipts, mined, final }
}

export const finalBlockOf = ({ chain }: EvmPort, head: Head): bigint =>
  head.number - BigInt(chain.row.confirmations - 1)
