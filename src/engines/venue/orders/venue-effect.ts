import { Fault } from '#kernel/contract/fault.ts'
import { match } from '#kernel/match-union.ts'
import { addToResult, type EffectDriver, type Settled } from '#kernel/task/effect-steps.ts'
import { cloidExecutionId } from '#kernel/task/execution-id.ts'
import { outsideId } from '#kernel/task/forgotten-execution.ts'
import { pollsOf } from '#kernel/task/poll-again.ts'
import type { EffectUpdate, StepContext, StepResultOf, TaskView } from '#kernel/task/task.ts'
import { replaceAdopted } from '#store/record-found-effect.ts'
import { type ActionTaskData, effectOf, type NotExecutedOutcome, retryThrottled } from './action-outcome.ts'
import type { ConfirmRequest } from './confirm-action.ts'
import { failedBy, type RejectionDeps, rejectedResult } from './order-failures.ts'
import type { ActionPlan, SignedActions } from './signed-action.ts'

/** A signed action at the venue, as the driver of an effect. */

type Result<Data, Names extends string> = StepResultOf<Partial<Data>, Names>

/**
 * Types a result that has a part of the task data as a result of the task. The cast is safe because `Data` extends
 * `Part`, which the compiler cannot conclude for unknown types.
 */
export const ofTask = <Part, Data extends Part, Names extends string>(
  result: StepResultOf<Partial<Part> | Partial<Data>, Names>,
) => result as Result<Data, Names>

export type VenuePlan<Data, Names extends string = 'sign' | 'confirm'> = Omit<ActionPlan, 'actionKey'> & {
  /** The task data that is committed with the signature. */
  data?: Partial<Data>
  /** Returns the result of the step if policy or custody refuses to sign; by default the task fails. */
  onRefused?: (fault: Fault) => Result<Data, Names>
}

/** How to find the action at the venue. `known` is a proof that an earlier run of the step stored. */
export type ActionSearch<Proof> = Pick<ConfirmRequest<Proof>, 'parseReply' | 'lookUp' | 'graceMs'> & {
  known?: Proof | undefined
}
/**
 * What is known of an action that an earlier task may have sent. With `data`, `search` finds the action. With `note`,
 * this action or an equal one was sent, and only an operator can find out which.
 */
export type SentBefore<Data> = { data: Partial<Data> } | { note: string }
export type VenueAction<Data, Proof, Names extends string> = {
  /** The key of the action, unique within its task, or a function of the data committed with the signature. */
  actionKey: string | ((data: Data) => string)
  search(task: TaskView<Data>): ActionSearch<Proof>
  /** Called before the first send; returns a finding if an earlier task of the execution may have sent the action. */
  before?(task: TaskView<Data>): Promise<SentBefore<Data> | undefined>
  /**
   * If the venue rejects an exit because of its request limit, the exit is signed again, with the data changes that
   * this function returns. With `false`, the rejection is final.
   */
  retry?: false | ((data: Data) => Partial<Data>)
  /** Returns the result of the step if the venue did not execute the action; if undefined, the task fails. */
  onRejected?(
    task: TaskView<Data>,
    outcome: NotExecutedOutcome,
    context: StepContext,
  ): Promise<Result<Data, Names> | undefined> | Result<Data, Names> | undefined
}

export type VenueDriverDeps = RejectionDeps & { signedActions: SignedActions }

/**
 * Builds the driver of an action at the venue. If the venue rejects an exit because of its request limit, the driver
 * signs the exit again.
 */
export const venueDriver = <
  Data extends ActionTaskData & { agent?: string },
  Proof,
  Names extends string = 'sign' | 'confirm',
>(
  deps: VenueDriverDeps,
  { actionKey, search, before, retry, onRejected }: VenueAction<Data, Proof, Names>,
): EffectDriver<Data, VenuePlan<Data, Names>, Proof, Names> => {
  const { signedActions } = deps
  const keyOf = (data: Data) => (typeof actionKey === 'string' ? actionKey : actionKey(data))
  return {
    async sign(task, { data, onRefused = failedBy, ...plan }, { now, steps }) {
      const onward = { now, next: steps.confirm, ...(data && { data }), onRefused }
      const key = keyOf({ ...task.data, ...data })
      return ofTask<ActionTaskData, Data, Names>(
        await signedActions.sign(task, { actionKey: key, ...plan }, onward),
      )
    },

    async confirm(task, settle, { steps, ...context }) {
      const { now, signal } = context
      const { known, ...how } = search(task)
      if (known !== undefined) return withEffects(await settle(known), [])
      const key = keyOf(task.data)
      const waiting = before && (await stateBefore(task, { before, key, confirm: steps.confirm }))
      if (waiting) return waiting
      const outcome = await signedActions.confirm({ task, actionKey: key, signal, ...how })
      const notExecuted = async (rejection: NotExecutedOutcome): Promise<Result<Data, Names>> => {
        const again =
          retry !== false && retryThrottled(task, rejection, { actionKey: key, next: steps.sign, now })
        if (again)
          return addToResult(ofTask<ActionTaskData, Data, Names>(again), { data: retry?.(task.data) })
        const own = await onRejected?.(task, rejection, context)
        return own ? withEffects(own, rejection.effects) : rejectedResult(deps, task, rejection)
      }
      return match(outcome, {
        unknown: async (each) =>
          ofTask<ActionTaskData, Data, Names>(signedActions.pollLater(task, steps.confirm, each)),
        executed: async ({ value, effects }) => withEffects(await settle(value), effects),
        rejected: notExecuted,
        expired: notExecuted,
      })
    },
  }
}

type AskBefore<Data, Names> = {
  before: (task: TaskView<Data>) => Promise<SentBefore<Data> | undefined>
  key: string
  confirm: Names
}

/**
 * Looks up an action that this database may have forgotten: the venue may accept an order id again once the first
 * order has ended, and an action without an id any number of times. Nothing is sent before a look-up.
 */
async function stateBefore<Data extends ActionTaskData, Names extends string>(
  task: TaskView<Data>,
  { before, key, confirm }: AskBefore<Data, Names>,
): Promise<Result<Data, Names> | undefined> {
  const { data } = task
  const { id, neverSent } = effectOf(task, key)
  if (outsideId(task) === undefined || data.looked_before === key || pollsOf(task) > 0) return undefined
  const sent = data.unclear_before ? { note: data.unclear_before } : await before(task).catch(ignoreFault)
  if (!sent) return undefined
  const waiting = { outcome: 'unknown' as const, effects: [{ effectId: id, status: 'unknown' as const }] }
  // A look-up that failed is repeated before anything is sent.
  if (sent === 'failed')
    return { ...waiting, park: { afterMs: failedLookUpMs, next: confirm }, state: 'reconciling' }
  if ('note' in sent) {
    const { note } = sent
    const park = { afterMs: unclearMs, next: confirm }
    const known = { unclear_before: note, note, ...(neverSent && { held_back: true as const }) }
    return ofTask<ActionTaskData, Data, Names>({ ...waiting, park, state: 'review', data: known })
  }
  const found = ofTask<ActionTaskData, Data, Names>({
    ...waiting,
    park: { afterMs: 0, next: confirm },
    state: 'reconciling',
    data: { looked_before: key },
  })
  const { action } = effectOf(task, key).intent as { action?: { orders?: { cloid: string }[] } }
  const executions = (action?.orders ?? []).map(({ cloid }) => cloidExecutionId(cloid))
  return addToResult(found, { data: sent.data, writes: (tx) => replaceAdopted(tx, task.id, executions) })
}

const failedLookUpMs = 1_000
const unclearMs = 60_000

function ignoreFault(fault: unknown): 'failed' {
  if (fault instanceof Fault) return 'failed'
  throw fault
}

function withEffects<Data, Names extends string>(
  { rejected = false, ...result }: Settled<Data, Names>,
  effects: EffectUpdate[],
): Result<Data, Names> {
  return addToResult(result, {
    effects: rejected ? effects.map((each) => ({ ...each, status: 'rejected' as const })) : effects,
  })
}
