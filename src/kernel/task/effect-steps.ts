import type { EffectUpdate, StepContext, StepEnd, StepResultOf, TaskView, Tx } from './task.ts'

/**
 * A signed effect as two steps of a task: one signs and stores the bytes, the next sends them and determines the
 * outcome. The author supplies the plan of the effect and its settlement. Its driver handles states, polls,
 * retries and an effect that was not executed.
 */

type Result<Data, Names extends string> = StepResultOf<Partial<Data>, Names>
/** `rejected` means that the effect reached the chain or venue, which changed nothing. */
export type Settled<Data, Names extends string> = Result<Data, Names> & { rejected?: boolean }

export type EffectNames<Names extends string> = { sign: Names; confirm: Names }
export type EffectContext<Names extends string> = StepContext & { steps: EffectNames<Names> }
/**
 * The context of a step that signs; `settle` is for an effect that was executed before its task, under the same
 * execution id.
 */
export type SignContext<Data, Proof, Names extends string> = EffectContext<Names> & {
  settle(task: TaskView<Data>, proof: Proof): Promise<Settled<Data, Names>>
}

/** Signs effects of one kind and proves their outcomes. `Names` are all steps of the task. */
export type EffectDriver<Data, Plan, Proof, Names extends string = 'sign' | 'confirm'> = {
  sign(
    task: TaskView<Data>,
    plan: Plan,
    context: SignContext<Data, Proof, Names>,
  ): Promise<Result<Data, Names>>
  /** `settle` gives the result of an executed effect; the driver adds the outcome of the effect. */
  confirm(
    task: TaskView<Data>,
    settle: (proof: Proof) => Promise<Settled<Data, Names>>,
    context: EffectContext<Names>,
  ): Promise<Result<Data, Names>>
}

export type EffectRules<Data, Plan, Proof, Names extends string = 'sign' | 'confirm'> = {
  driver: EffectDriver<Data, Plan, Proof, Names>
  /** Returns the plan of the effect to sign, or the result of the step if nothing is to be signed. */
  plan(
    task: TaskView<Data>,
    context: StepContext,
  ): Plan | Result<Data, Names> | Promise<Plan | Result<Data, Names>>
  settle(
    task: TaskView<Data>,
    proof: Proof,
    context: StepContext,
  ): Settled<Data, Names> | Promise<Settled<Data, Names>>
}
export type EffectStep<Data, Names extends string> = (
  task: TaskView<Data>,
  context: StepContext,
) => Promise<Result<Data, Names>>
export type EffectSteps<Data, Names extends string> = Record<'sign' | 'confirm', EffectStep<Data, Names>>

const isResult = <Plan extends object, Data, Names extends string>(
  planned: Plan | Result<Data, Names>,
): planned is Result<Data, Names> => 'next' in planned || 'park' in planned || 'end' in planned

/** Makes the two steps of one effect in a task with further steps; `steps` gives their names. */
export const createEffect = <Data, Plan extends object, Proof, Names extends string>({
  driver,
  plan,
  settle,
  steps,
}: EffectRules<Data, Plan, Proof, Names> & { steps: EffectNames<Names> }): EffectSteps<Data, Names> => ({
  async sign(task, context) {
    const planned = await plan(task, context)
    if (isResult(planned)) return planned
    const settleFound = async (found: TaskView<Data>, proof: Proof) => settle(found, proof, context)
    return driver.sign(task, planned, { ...context, steps, settle: settleFound })
  },
  confirm: (task, context) =>
    driver.confirm(task, async (proof) => settle(task, proof, context), { ...context, steps }),
})

export const oneEffect = <Data, Plan extends object, Proof>(rules: EffectRules<Data, Plan, Proof>) =>
  createEffect({ ...rules, steps: { sign: 'sign', confirm: 'confirm' } })

type TaskError = Extract<StepEnd, { error: unknown }>['error']
export const notExecuted = (error: TaskError) => ({ end: 'failed', outcome: 'not_executed', error }) as const

/** Ends a task whose transaction is not signed, because it would fail. */
export const wouldFail = ({ displayName: upstream }: { displayName: string }, reason: string) =>
  notExecuted({
    code: 'tx_failed',
    message: `The transaction would fail: ${reason}`,
    retryable: false,
    upstream,
  })

type Writes = ((tx: Tx) => Promise<void>) | undefined
export const combineWrites =
  (...all: readonly Writes[]) =>
  async (tx: Tx): Promise<void> => {
    for (const writes of all) await writes?.(tx)
  }

type Addition<Patch> = {
  effects?: EffectUpdate[]
  data?: Patch | undefined
  writes?: Writes
}

/**
 * Adds effects, data and writes to the result of a step, also for the case that the step's signature is refused.
 */
export function addToResult<Patch, Names extends string>(
  result: StepResultOf<Patch, Names>,
  addition: Addition<Patch>,
): StepResultOf<Patch, Names> {
  const { effects = [], data, writes } = addition
  const more = {
    ...result,
    effects: [...effects, ...(result.effects ?? [])],
    ...(data && { data: Object.assign({}, result.data, data) }),
    ...(writes && { writes: combineWrites(writes, result.writes) }),
  }
  if (!('sign' in more) || !more.sign.onRefused) return more
  const { onRefused } = more.sign
  return { ...more, sign: { ...more.sign, onRefused: (fault) => addToResult(onRefused(fault), addition) } }
}
