import { isRecord } from '#kernel/wire/json.ts'
import type { SoughtExecution } from './forgotten-execution.ts'
import type { Effect, EndResult, TaskView } from './task.ts'
import { isLive } from './task-state.ts'

/** How an operator ends a task whose outcome no look-up determines: by what was found elsewhere. */

export const operatorOutcomes = ['executed', 'partial', 'not_executed'] as const
export type OperatorOutcome = (typeof operatorOutcomes)[number]

/** What somebody else has paid. `logIndex`: its event in the transaction, where the chain numbers events. */
export type FoundPayment = { txHash: string; logIndex: number | null }
export type OperatorFinding = {
  outcome: OperatorOutcome
  /** The transaction of the task that was mined. */
  txHash: string | null
  payment: FoundPayment | null
  /** In smallest units: what left, where the task does not know it. */
  inUnits: bigint | null
  /** In smallest units: what arrived. */
  outUnits: bigint | null
  at: Date
}
export type Refusal = { refusal: string }
/**
 * The end of a task of one kind, with what its own step would have booked. `ending`: the part that is the same for every
 * kind. Refused where the finding contradicts what the task knows, or does not say enough.
 */
export type OperatorEnd = (
  task: TaskView<object>,
  ending: EndResult,
  finding: OperatorFinding,
) => EndResult | Refusal

export const isSameTransaction = (one: string, other: string) =>
  one === other || (one.startsWith('0x') && one.toLowerCase() === other.toLowerCase())

/** The attempt of an effect that is this transaction, in whatever case its hash is given. */
export const attemptOf = ({ txAttempts }: Pick<Effect, 'txAttempts'>, txHash: string) =>
  txAttempts.find(({ externalId }) => isSameTransaction(externalId, txHash))

/** The effect of unknown outcome that this transaction would have executed. */
export const liveEffectOf = (
  { effects }: Pick<TaskView, 'effects'>,
  txHash: string | null,
): Effect | undefined =>
  txHash === null ? undefined : effects.find((effect) => isLive(effect) && attemptOf(effect, txHash))

type LookUp = { sought?: SoughtExecution | null }
/** What a task without an effect looks up, itself or as its swap. */
export function soughtOf({ data }: Pick<TaskView<object>, 'data'>): SoughtExecution | undefined {
  const { sought, swap } = data as LookUp & { swap?: LookUp }
  return sought ?? swap?.sought ?? undefined
}

/** Whether this transaction is of the task: one that it has signed, or that was executed before it and is looked up. */
export const isOwnTransaction = (task: Pick<TaskView<object>, 'data' | 'effects'>, txHash: string | null) =>
  txHash !== null && (liveEffectOf(task, txHash) !== undefined || soughtOf(task) !== undefined)

/** The venue takes no nonce that is older, and it is the last to forget what was signed without an expiry. */
const unboundedMs = 2 * 24 * 3_600_000

/** When what was signed can no longer be executed. */
export const expiryOf = ({ validUntil, at }: Pick<Effect, 'validUntil' | 'at'>): Date =>
  validUntil ?? new Date(at.getTime() + unboundedMs)

/** The type of an action at the venue; undefined for an effect on a chain. */
export const actionTypeOf = ({ intent: { action } }: Pick<Effect, 'intent'>): unknown =>
  isRecord(action) ? action.type : undefined

/** Changes between the user's own balances, or of a setting: nothing of the task was executed by them. */
const preparations: readonly unknown[] = ['move_cash', 'set_leverage']
export const isPreparation = (effect: Pick<Effect, 'intent'>): boolean =>
  preparations.includes(actionTypeOf(effect))

/** What was executed of the task for good. */
export const executedEffects = ({ effects }: Pick<TaskView, 'effects'>): Effect[] =>
  effects.filter((effect) => effect.status === 'confirmed' && !isPreparation(effect))

/** The options that say nothing about a task of this kind. */
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
 * The end of a kind that books nothing: its records elsewhere are compared later, or there are none. `partial` says that
 * some of its effects were executed.
 */
export const reportedEnd: OperatorEnd = (task, ending, finding) => {
  const unused = unusedOption(finding)
  if (unused) return unused
  if (finding.outcome === 'partial' && executedEffects(task).length === 0)
    return { refusal: 'No part of the task is known to be executed: it was executed, or it was not.' }
  return ending
}

/** Refuses a partial end of a kind that is one effect. */
export const wholeOrNothing = (finding: OperatorFinding): Refusal | undefined =>
  finding.outcome === 'partial'
    ? { refusal: 'A task of this kind is executed as a whole, or not at all.' }
    : undefined
