import { isRecord } from '#kernel/wire/json.ts'
import type { SoughtExecution } from './forgotten-execution.ts'
import type { Effect, EndResult, TaskView } from './task.ts'
import { isLive } from './task-state.ts'

/** Lets an operator end a task whose outcome no look-up determines, by evidence found elsewhere. */

export const operatorOutcomes = ['executed', 'partial', 'not_executed'] as const
export type OperatorOutcome = (typeof operatorOutcomes)[number]

/** A payment that another party made. `logIndex` is its event in the transaction, if the chain numbers events. */
export type FoundPayment = { txHash: string; logIndex: number | null }
export type OperatorFinding = {
  outcome: OperatorOutcome
  /** The mined transaction of the task. */
  txHash: string | null
  payment: FoundPayment | null
  /** The units that left the user, in the smallest unit, if the task does not know them. */
  inUnits: bigint | null
  outUnits: bigint | null
  at: Date
}
export type Refusal = { refusal: string }
/**
 * Ends a task of one kind and books what its own step would have booked. `ending` is the part that is the same
 * for every kind. Refuses a finding that contradicts what the task knows, or that does not say enough.
 */
export type OperatorEnd = (
  task: TaskView<object>,
  ending: EndResult,
  finding: OperatorFinding,
) => EndResult | Refusal

export const isSameTransaction = (one: string, other: string) =>
  one === other || (one.startsWith('0x') && one.toLowerCase() === other.toLowerCase())

/**
 * Returns the attempt of an effect that has this transaction hash; the case of a hexadecimal hash does not matter.
 */
export const attemptOf = ({ txAttempts }: Pick<Effect, 'txAttempts'>, txHash: string) =>
  txAttempts.find(({ externalId }) => isSameTransaction(externalId, txHash))

/** Returns the effect of unknown outcome that this transaction would have executed. */
export const liveEffectOf = (
  { effects }: Pick<TaskView, 'effects'>,
  txHash: string | null,
): Effect | undefined =>
  txHash === null ? undefined : effects.find((effect) => isLive(effect) && attemptOf(effect, txHash))

type LookUp = { sought?: SoughtExecution | null }
/** Returns the earlier execution that a task without an effect looks up, directly or through its swap. */
export function soughtOf({ data }: Pick<TaskView<object>, 'data'>): SoughtExecution | undefined {
  const { sought, swap } = data as LookUp & { swap?: LookUp }
  return sought ?? swap?.sought ?? undefined
}

/**
 * Whether the task holds back the action that it signed, because an equal action may have been sent before. The
 * signed action is never sent, and what was executed is the earlier action.
 */
export const isHeldBack = ({ data }: Pick<TaskView<object>, 'data'>): boolean => 'held_back' in data

/** Whether this transaction may be the task's: the task has signed it, or looks up an earlier execution. */
export const isOwnTransaction = (task: Pick<TaskView<object>, 'data' | 'effects'>, txHash: string | null) =>
  txHash !== null && (liveEffectOf(task, txHash) !== undefined || soughtOf(task) !== undefined)

/**
 * How long a signature without an expiry may still be executed: two days, after which even the venue, which accepts old
 * nonces longest, refuses them.
 */
const unboundedMs = 2 * 24 * 3_600_000

export const expiryOf = ({ validUntil, at }: Pick<Effect, 'validUntil' | 'at'>): Date =>
  validUntil ?? new Date(at.getTime() + unboundedMs)

export const actionTypeOf = ({ intent: { action } }: Pick<Effect, 'intent'>): unknown =>
  isRecord(action) ? action.type : undefined

/**
 * Actions that change a setting or move money between the user's own balances. Their execution does not mean that the
 * task was executed.
 */
const preparations: readonly unknown[] = ['move_cash', 'set_leverage']
export const isPreparation = (effect: Pick<Effect, 'intent'>): boolean =>
  preparations.includes(actionTypeOf(effect))

/** Returns the effects by which the task was finally executed. */
export const executedEffects = ({ effects }: Pick<TaskView, 'effects'>): Effect[] =>
  effects.filter((effect) => effect.status === 'confirmed' && !isPreparation(effect))

export function unusedOption(
  { payment, inUnits, outUnits }: OperatorFinding,
  used: readonly ('payment' | 'amount-in' | 'amount-out')[] = [],
): Refusal | undefined {
  const given = [
    ...(payment ? ['payment' as const] : []),
    ...(inUnits === null ? [] : ['amount-in' as const]),
    ...(outUnits === null ? [] : ['amount-out' as const]),
  ].find((option) => !used.includes(option))
  return given && { refusal: `--${given} says nothing about a task of this kind.` }
}

/**
 * The end of a task whose kind books nothing, because its records elsewhere are compared later, or because it has none.
 * The outcome `partial` requires that some effect of the task was executed.
 */
export const reportedEnd: OperatorEnd = (task, ending, finding) => {
  const unused = unusedOption(finding)
  if (unused) return unused
  if (finding.outcome === 'partial' && executedEffects(task).length === 0)
    return { refusal: 'No part of the task is known to be executed: it was executed, or it was not.' }
  return ending
}

export const wholeOrNothing = (finding: OperatorFinding): Refusal | undefined =>
  finding.outcome === 'partial'
    ? { refusal: 'A task of this kind is executed as a whole, or not at all.' }
    : undefined
