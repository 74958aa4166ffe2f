import {
  attemptOf,
  executedEffects,
  expiryOf,
  type FoundPayment,
  isHeldBack,
  isPreparation,
  isSameTransaction,
  liveEffectOf,
  type OperatorFinding,
  operatorOutcomes,
  soughtOf,
} from '#kernel/task/operator-end.ts'
import type { Effect, EffectUpdate, EndResult, JsonObject, Move, TaskView } from '#kernel/task/task.ts'
import { isLive } from '#kernel/task/task-state.ts'
import type { FoundEffect } from '#store/record-found-effect.ts'
import { type Arguments, oneOf, UsageError } from './arguments.ts'

/**
 * Ends a task as an operator found it: reads the finding from the options, checks it, and makes the parts of the end
 * that are the same for every kind of task.
 */

export type Resolution = OperatorFinding & { evidence: string }

export function unitsOption(args: Arguments, name: string): bigint | null {
  const text = args.text(name)
  if (text === undefined) return null
  if (!/^[1-9]\d{0,77}$/.test(text))
    throw new UsageError(`--${name} must be a whole number of smallest units.`)
  return BigInt(text)
}

/** Reads `--payment`: a transaction and, after a colon, the number of the event that shows the payment. */
export function paymentOption(args: Arguments): FoundPayment | null {
  const text = args.text('payment')
  if (text === undefined) return null
  const [, txHash, log] = /^(0x[0-9a-fA-F]{64}|[1-9A-HJ-NP-Za-km-z]{64,90})(?::(\d{1,9}))?$/.exec(text) ?? []
  if (txHash === undefined)
    throw new UsageError(
      '--payment must be the hash or signature of a transaction; on EVM chains `<hash>:<log>` with the number of its event.',
    )
  return { txHash, logIndex: log === undefined ? null : Number(log) }
}

export function readResolution(args: Arguments, at: Date): Resolution {
  const evidence = args.text('evidence')
  if (!evidence) throw new UsageError('--evidence is required: state where you looked, and what you saw.')
  return {
    outcome: oneOf('--outcome', operatorOutcomes, args.text('outcome')),
    evidence,
    txHash: args.text('tx-hash') ?? null,
    payment: paymentOption(args),
    inUnits: unitsOption(args, 'amount-in'),
    outUnits: unitsOption(args, 'amount-out'),
    at,
  }
}

/** A signed action that a chain or venue could still execute would contradict what the operator says. */
function assertExpired(effects: readonly Effect[], now: Date): void {
  const open = effects.find((effect) => isLive(effect) && expiryOf(effect) > now)
  if (!open) return
  const height = open.intent.lastValidBlockHeight
  const above =
    height === undefined ? '' : `, and until the chain has finalised a block above height ${String(height)}`
  throw new UsageError(
    `An action that the task signed can be executed until ${expiryOf(open).toISOString()}. Wait until then${above}.`,
  )
}

function assertNothingExecuted(task: Pick<TaskView, 'effects'>): void {
  const [effect] = executedEffects(task)
  if (!effect) return
  const hash = effect.txAttempts.find(({ status }) => status === 'confirmed')?.externalId
  throw new UsageError(
    `A part of the task was executed${hash === undefined ? '' : `: ${hash}`}. Use --outcome partial, or executed.`,
  )
}

/** Only a transaction that the task signed can execute its effect on a chain: `--tx-hash` has to name one of these. */
function assertOwnTransaction({ effects }: Pick<TaskView, 'effects'>, { txHash }: Resolution): void {
  const onChain = effects.filter((effect) => isLive(effect) && !('action' in effect.intent))
  const hashes = onChain.flatMap(({ txAttempts }) => txAttempts.map(({ externalId }) => externalId))
  if (hashes.length === 0 || liveEffectOf({ effects: onChain }, txHash)) return
  throw new UsageError(
    `--tx-hash must be the transaction of the task that was executed, one of ${hashes.join(', ')}.`,
  )
}

/**
 * Completes the operator's finding for a task that looks up an earlier execution of its account. Such a task has no
 * effect of its own, so the finding is checked against what the look-up has found on the chain.
 */
export function withSought(task: Pick<TaskView, 'data'>, resolution: Resolution): Resolution {
  const sought = soughtOf(task)
  if (!sought) return resolution
  const { outcome } = resolution
  const { tx_hash: foundHash, is_found: isFound } = sought
  const given = resolution.txHash
  if (foundHash !== null && given !== null && !isSameTransaction(given, foundHash))
    throw new UsageError(`--tx-hash must be the transaction that was found: ${foundHash}.`)
  const txHash = foundHash ?? (given?.startsWith('0x') ? given.toLowerCase() : given)
  if (outcome === 'not_executed' && (isFound || txHash !== null)) {
    const where = txHash === null ? '' : `: ${txHash}`
    throw new UsageError(`The account has executed this before the task${where}. Use another --outcome.`)
  }
  if (txHash === null && (outcome === 'executed' || isFound))
    throw new UsageError('--tx-hash is required: the transaction of the account that was executed.')
  return { ...resolution, txHash }
}

/**
 * Makes an effect for a task that looks up an earlier execution and has no effect of its own, from the operator's
 * finding. `withSought` must have completed `resolution` before.
 */
export function soughtEffect(
  { id: taskId, data, step }: Pick<TaskView, 'id' | 'data'> & { step: string },
  { txHash, evidence, at }: Resolution,
): FoundEffect | undefined {
  const sought = soughtOf({ data })
  if (!sought || txHash === null) return undefined
  const { kind, chain_id: chainId } = sought
  return {
    taskId,
    step,
    kind,
    externalId: txHash,
    intent: { chainId, usdMicros: '0' },
    // The nonce of the found transaction is not known, so the effect gets a nonce sequence of its own.
    nonceSequence: { kind: 'found', chain: chainId, signer: txHash },
    nonce: 0n,
    proof: { tx_hash: txHash, evidence },
    at,
  }
}

export type PendingHold = { key: string }
type Base = { task: TaskView; pending: readonly PendingHold[]; actor: string }

/** Returns the end of a task; throws if the completed finding contradicts what the task has signed. */
export function endingOf({ task, pending, actor }: Base, resolution: Resolution): EndResult {
  const { outcome, evidence, txHash, at } = resolution
  const sent = liveEffectOf(task, txHash)
  const wasNeverSent = isHeldBack(task)
  const isConfirmed = (effect: Effect) => !wasNeverSent && (outcome === 'executed' || effect.id === sent?.id)
  if (outcome === 'executed') assertOwnTransaction(task, resolution)
  else if (!wasNeverSent)
    assertExpired(
      task.effects.filter((effect) => !isConfirmed(effect)),
      at,
    )
  if (outcome === 'not_executed') {
    assertNothingExecuted(task)
    if (sent) throw new UsageError('--tx-hash says that the transaction was executed: use another --outcome.')
  }
  const proof: JsonObject = { operator: actor, evidence, ...(txHash !== null && { tx_hash: txHash }) }
  const effects = task.effects.filter(isLive).map(
    (effect): EffectUpdate =>
      isConfirmed(effect)
        ? {
            effectId: effect.id,
            status: 'confirmed',
            proof,
            ...(effect.id === sent?.id && { attemptExternalId: attemptOf(effect, txHash!)!.externalId }),
          }
        : { effectId: effect.id, status: 'dropped', proof },
  )
  const moved = outcome === 'executed' || (sent !== undefined && !isPreparation(sent))
  const shared = {
    effects,
    // An earlier execution had spent the units before this task held any, so the holds of the task are not posted.
    moves: moved && !soughtOf(task) ? pending.map(({ key }): Move => ({ move: 'post', key })) : [],
  }
  const data = { operator: proof, ...shownTransactions(task, effects) }
  if (outcome === 'executed') {
    const where = txHash === null ? '' : `, in transaction ${txHash}`
    const note = `an operator determined that it was executed${where}`
    return { ...shared, end: 'completed', outcome, result: null, data: { ...data, note } }
  }
  const message =
    outcome === 'partial'
      ? 'An operator determined that a part of it was executed'
      : 'An operator determined that nothing was executed'
  const details: JsonObject = { ended_by: 'operator', ...(txHash !== null && { tx_hash: txHash }) }
  const error = { code: 'ended_by_operator', message, retryable: false, details }
  return { ...shared, end: 'failed', outcome, error, data }
}

function shownTransactions({ data, effects }: TaskView, updates: readonly EffectUpdate[]): JsonObject {
  if (!Array.isArray(data.transactions)) return {}
  const statusOf = new Map(
    effects.flatMap(({ id, txAttempts }) => {
      const update = updates.find(({ effectId }) => effectId === id)
      if (!update) return []
      return txAttempts.map(({ externalId }): [string, string] => [
        externalId,
        update.status === 'dropped'
          ? 'dropped'
          : externalId === update.attemptExternalId
            ? 'finalized'
            : 'replaced',
      ])
    }),
  )
  const transactions = (data.transactions as JsonObject[]).map((each) => {
    const status = statusOf.get(String(each.tx_hash))
    return status === undefined ? each : { ...each, status }
  })
  return { transactions }
}
