import type { Settled, SignContext } from './effect-steps.ts'
import { pollAgain, pollReview, pollSilent } from './poll-again.ts'
import type { Effect, StepResultOf, TaskView } from './task.ts'
import { isExposed } from './task-state.ts'

/**
 * A forgotten execution is an effect that was executed under the same execution id before its task existed: this
 * database has lost it. It is looked up before anything is signed, never sent again, and settled by its own
 * record.
 */

/** The execution that a task looks up on a chain before it signs; an operator who ends the task confirms it. */
export type SoughtExecution = {
  chain_id: string
  kind: string
  /** Whether the chain shows that the account has executed the effect; its transaction may be unknown even then. */
  is_found: boolean
  tx_hash: string | null
}

type Result<Data, Names extends string> = StepResultOf<Partial<Data>, Names>
type Search<Data, Proof, Names extends string> = {
  task: TaskView<Data>
  context: Pick<SignContext<Data, Proof, Names>, 'settle'>
}

/**
 * The proof of a found execution, with the terms that the task's data take over; undefined if nothing is proven.
 */
export type FoundProof<Data, Proof> = { proof: Proof; data?: Partial<Data> } | undefined

type Finding<Data, Proof, Executed> = {
  task: TaskView<Data>
  /** Proves a found execution in the task's own way; without this function, the proof of the task's effects is used. */
  found?:
    | ((
        task: TaskView<Data>,
        executed: Executed,
      ) => Promise<FoundProof<Data, Proof>> | FoundProof<Data, Proof>)
    | undefined
}
export async function proofOf<Data, Proof, Executed>(
  { task, found }: Finding<Data, Proof, Executed>,
  executed: Executed,
  prove: (executed: Executed) => Promise<Proof | undefined> | Proof | undefined,
): Promise<FoundProof<Data, Proof>> {
  if (found) return found(task, executed)
  const proof = await prove(executed)
  return proof === undefined ? undefined : { proof }
}

/**
 * Returns the execution id to look up. A task whose execution id is its task id looks up nothing, unless the database
 * may have been restored to an earlier state.
 */
export const outsideId = ({
  id,
  executionId,
  mayBeForgotten,
}: Pick<TaskView, 'id' | 'executionId' | 'mayBeForgotten'>): string | undefined =>
  executionId === id && !mayBeForgotten ? undefined : executionId

/** Counts the executed effects of one kind on a chain; the next effect of this kind follows them. */
export const executedBefore = (
  { effects = [] }: { effects?: readonly Effect[] },
  wanted: { kind: string; chainId: string },
): number =>
  effects.filter(
    ({ kind, status, intent }) =>
      kind === wanted.kind && status === 'confirmed' && intent.chainId === wanted.chainId,
  ).length

/**
 * The fields of a task's data by which it rules out an earlier execution: that none was found, and what the venue
 * said of its own sends. They are void once the database has gone back to an earlier state.
 */
export const ruledOutFields: readonly string[] = ['looked_up', 'answered_version', 'unknown_since']

type SoughtTask = Pick<TaskView, 'effects' | 'outcome'>
/** Whether a task without an effect of its own looks up an earlier execution: nothing may refuse or end it then. */
export const isLookingUp = ({ effects, outcome }: SoughtTask): boolean =>
  outcome === 'unknown' && !effects.some(isExposed)
/** Whether a cancel or the deadline would still end the task, which is therefore marked before a look-up continues. */
export const wouldEndUnseen = ({ effects, outcome }: SoughtTask): boolean =>
  outcome !== 'unknown' && !effects.some(isExposed)

/**
 * Casts a result that sets the poll count, the note and the look-up of a task, whose full data are unknown here.
 */
const ofTask = <Data, Names extends string>(
  result: StepResultOf<{ polls?: number; note: string | null; sought: SoughtExecution | null }, Names>,
) => result as unknown as Result<Data, Names>

/**
 * Ends a look-up that found nothing, before anything is signed, so that a cancel or the deadline takes effect
 * first.
 */
export const nothingFound = <Data, Names extends string>(next: Names): Result<Data, Names> =>
  ofTask({ next, state: 'held', data: { polls: 0, note: null, sought: null } })

const backoff = { firstMs: 1_000, maxMs: 15_000 }

type LookUp<Data, Names extends string> = {
  task: TaskView<Data>
  context: { now: Date; steps: { sign: Names } }
}
type Repeated = {
  state: 'confirming' | 'reconciling' | 'review'
  note: string
  /** The execution that is looked up; undefined if the step that signs sets it at the next look-up. */
  sought?: Pick<SoughtExecution, 'chain_id' | 'kind'> & Partial<SoughtExecution>
}

/**
 * Repeats a look-up that failed, or that found something it cannot read. The mark `unknown` lets nothing else
 * end the task. The older a marked task without an answer is, the less often it is looked up.
 */
export function lookUpAgain<Data, Names extends string>(
  { task, context: { now, steps } }: LookUp<Data, Names>,
  { state, note, sought }: Repeated,
): Result<Data, Names> {
  const polled = { data: task.data as { polls?: number; sought?: SoughtExecution | null } }
  // A later look-up that fails does not undo an earlier finding.
  const before = polled.data.sought ?? null
  const known = sought ? { is_found: false, tx_hash: null, ...before, ...sought } : before
  const age = { ageMs: now.getTime() - task.createdAt.getTime(), backoff }
  const parked =
    state === 'review'
      ? pollReview(polled, steps.sign, age)
      : state === 'confirming' || wouldEndUnseen(task)
        ? { ...pollAgain(polled, steps.sign, backoff), state }
        : pollSilent(polled, steps.sign, age)
  return ofTask({ ...parked, outcome: 'unknown', data: { ...parked.data, note, sought: known } })
}

/**
 * Settles a task by a forgotten execution. Without `spendsLedger` nothing of the hold is posted, because the units had
 * left the account before its balance was read.
 */
export async function settleForgotten<Data, Proof, Names extends string>(
  { task, context, spendsLedger = false }: Search<Data, Proof, Names> & { spendsLedger?: boolean },
  { proof, data }: NonNullable<FoundProof<Data, Proof>>,
): Promise<Settled<Data, Names>> {
  const settled = await context.settle({ ...task, data: { ...task.data, ...data } }, proof)
  return settled.spent === undefined || spendsLedger ? settled : { ...settled, spent: 0n }
}
