import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kernel/contract/fault.ts'
import type { Effect, TxAttempt } from '#kernel/task/task.ts'
import type { SignatureReading } from '#upstreams/solana/signature-watcher.ts'
import type { SignatureStatus } from '#upstreams/solana/solana.ts'
import type { SvmPort } from './svm-port.ts'

/** How long a step waits for a transaction to be final, as on a local chain; after that the task is parked. */
const inlineMs = 2_000
const slowReplyMs = 4_000
/** Leaders drop transactions, so the same bytes are sent again until they are seen. */
export const resendMs = 2_000
const sendPauseMs = 100
/** The most sends of a transaction in one run of a step. */
const sendsMax = 4

export type LandingState = {
  reading: SignatureReading
  outcomeUnknown: boolean
}

export const attemptOf = (effect: Effect): TxAttempt => {
  const attempt = effect.txAttempts.at(-1)
  if (!attempt) throw new Error(`effect ${effect.id} has no transaction attempt`)
  return attempt
}

export const isFinal = ({ chain }: SvmPort, status: SignatureStatus | undefined): boolean =>
  status !== undefined &&
  (status.commitment === 'finalized' ||
    (chain.row.finality === 'confirmed' && status.commitment === 'confirmed'))

/** Sends unseen bytes again until they are seen or time is up; equal bytes are executed at most once. */
export async function awaitLanding(
  effect: Effect,
  port: SvmPort,
  signal: AbortSignal,
): Promise<LandingState> {
  const { chain, watcher } = port
  const { raw, externalId, status } = attemptOf(effect)
  const startedMs = performance.now()
  const elapsedMs = () => performance.now() - startedMs
  let sends = 0
  let sentMs = Number.NEGATIVE_INFINITY
  let outcomeUnknown = false
  const send = async () => {
    sends += 1
    outcomeUnknown = !(await isSent(chain, raw))
    sentMs = elapsedMs()
  }
  if (status === 'prepared') await send()
  using watch = watcher.watch(externalId, signal)
  let reading: SignatureReading | undefined
  for (let isFresh = true; ; isFresh = false) {
    // The first reply of the node may take longer than the wait for finality, so it has a timeout of its own.
    const timeoutMs = reading || elapsedMs() < inlineMs ? Math.max(0, inlineMs - elapsedMs()) : slowReplyMs
    reading = (await watch.next({ timeoutMs, isFresh })) ?? reading
    const isLate = signal.aborted || elapsedMs() >= inlineMs
    if (reading && (isLate || isFinal(port, reading.status))) return { reading, outcomeUnknown }
    if (!reading && (signal.aborted || elapsedMs() > inlineMs + slowReplyMs))
      throw new Fault('upstream_timeout', `The ${chain.row.displayName} node is slow`)
    const isDue = outcomeUnknown || elapsedMs() - sentMs >= resendMs
    if (!reading || reading.status || !isDue || sends >= sendsMax) continue
    await send()
    if (outcomeUnknown) await pause(sendPauseMs * sends, undefined, { signal }).catch(() => undefined)
  }
}

/** Whether the node took the bytes. A rejection proves nothing: an earlier send of the bytes may have arrived. */
async function isSent(chain: SvmPort['chain'], raw: string): Promise<boolean> {
  try {
    await chain.send(raw)
    return true
  } catch (fault) {
    if (fault instanceof Fault) return false
    throw fault
  }
}
