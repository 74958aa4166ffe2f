import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { sponsorBudgetUsed } from '#kernel/money/sponsor-budget.ts'
import type { SoughtExecution } from './forgotten-execution.ts'
import type { GasCharge } from './gas-charge.ts'
import type { Principal } from './policy-action.ts'
import { pollReview, pollSilent } from './poll-again.ts'
import type { Effect, EffectUpdate, EndResult, JsonObject, SignFirst, TaskView } from './task.ts'

/** The plan of a transaction that a sponsor pays for, as far as it is the same on all chains. */

export type SponsoredPlan = {
  chainId: string
  account: string
  operation: string
  tokens: string[]
  recipients: string[]
  usdMicros: bigint
  exit: boolean
  principal?: Principal
  /** True if the transaction withdraws the whole position, and may therefore use the sponsor's reserve. */
  fullExit?: boolean
  /**
   * Returns the end of a task that must not be signed. It is called before the signature, and after the look-up of
   * an earlier execution.
   */
  refusal?(): Promise<EndResult<never> | undefined>
}

export type SponsoredTaskData = {
  polls?: number
  /** The transactions of the task, as its user sees them. */
  transactions?: JsonObject[]
  balance_changes?: JsonObject[]
  /** Says what is known while the outcome is unknown; it is shown with the message of the task. */
  note?: string | null
  sought?: SoughtExecution | null
}

/** Readings of the admission that are older than this are read again by the step `sign`. */
export const trialMsMax = 3_000

/**
 * If custody or a sponsor is unavailable, the task is accepted without a signature, and its step `sign` tries again.
 */
export const unlessAway =
  (sign: SignFirst<'confirm'>): SignFirst<'confirm'> =>
  (task, context) =>
    sign(task, context).catch((fault: unknown) => {
      if (fault instanceof Fault && fault.retryable) return undefined
      throw fault
    })

type SponsorBudget = { name: string; decimals: number; budgetUnits: bigint; clock: Clock }
/** `units` is the maximum cost. A full exit counts towards the budget, but is never refused. */
export type ChargedCost = { chainId: string; units: bigint; fullExit: boolean; isExit?: boolean }

/** Exits may use so many times the budget, and entries the budget alone: so entries never use up what exits need. */
const exitShares = 2n

export function sponsorCharge(
  { budgetUnits: entryUnits, ...budget }: SponsorBudget,
  { chainId, units, fullExit, isExit = false }: ChargedCost,
): GasCharge {
  const budgetUnits = isExit ? entryUnits * exitShares : entryUnits
  return {
    chainId,
    wei: units,
    budgetWei: fullExit ? null : budgetUnits,
    refuse: (usedUnits) => sponsorBudgetUsed({ ...budget, budgetUnits, usedUnits, requiredUnits: units }),
  }
}

export const pollBackoff = { firstMs: 1_000, maxMs: 15_000 }
/** The poll interval of a task that a watcher wakes: the poll is only needed if this instance dies. */
export const watchedBackoff = { firstMs: 4_000, maxMs: 15_000 }

type Confirming<Name extends string> = {
  task: TaskView<SponsoredTaskData>
  effect: Effect
  steps: { confirm: Name }
  now: Date
}

export const updateOf = (
  { effect }: Pick<Confirming<string>, 'effect'>,
  status: EffectUpdate['status'],
): EffectUpdate[] => [{ effectId: effect.id, status }]

/** The result of a step whose node gave no answer: the task polls again, and its outcome is unknown. */
export function silentResult<Name extends string>(context: Confirming<Name>) {
  const { task, effect, steps, now } = context
  const ageMs = now.getTime() - effect.at.getTime()
  const polled = pollSilent(task, steps.confirm, { ageMs, backoff: pollBackoff })
  return { ...polled, outcome: 'unknown' as const, effects: updateOf(context, 'unknown') }
}

/** The result of a step whose readings contradict each other or prove nothing: the task is in review. */
export function reviewResult<Name extends string>(context: Confirming<Name>) {
  const { task, steps, now } = context
  const ageMs = now.getTime() - task.createdAt.getTime()
  const polled = pollReview(task, steps.confirm, { ageMs, backoff: pollBackoff })
  return { ...polled, outcome: 'unknown' as const, effects: updateOf(context, 'unknown') }
}

type ShownTransaction = { txHash: string; status: string; block?: bigint | undefined; nonce?: bigint }
export const transactionView = (
  { id, explorerUrl }: { id: string; explorerUrl: string },
  { txHash, status, block, nonce }: ShownTransaction,
): JsonObject => ({
  chain_id: id,
  tx_hash: txHash,
  explorer_url: `${explorerUrl}/tx/${txHash}`,
  status,
  block: block === undefined ? null : Number(block),
  nonce: nonce === undefined ? null : Number(nonce),
})
