import type { Settled, SignContext } from './one-effect.ts'
import { pollAgain, pollReview, pollSilent } from './poll-again.ts'
import type { Effect, StepResultOf, TaskView } from './task.ts'
import { isExposed } from './task-state.ts'

/**
 * An effect that was executed before its task exists, under the same execution id: this database has forgotten it. It is
 * looked up before anything is signed, never sent again, and settled by its own record.
 */

/** What a task looks up on a chain before its first signature, for an operator who has to end it. */
export type SoughtExecution = {
  chain_id: string
  /** The kind of the effect that it was. */
  kind: string
  /** The account has executed it, as the chain shows, although its transaction may not be known. */
  is_found: boolean
  tx_hash: string | null
}

type Result<Data, Names extends string> = StepResultOf<Partial<Data>, Names>
type Search<Data, Proof, Names extends string> = {
  task: TaskView<Data>
  context: Pick<SignContext<Data, Proof, Names>, 'settle'>
}

/** The proof of what was found, and what of its own terms the data of the task take over; undefined: it proves nothing. */
export type FoundProof<Data, Proof> = { proof: Proof; data?: Partial<Data> } | undefined

type Finding<Data, Proof, Executed> = {
  task: TaskView<Data>
  /** Where the task proves what was found otherwise than what it has sent. */
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
 * The id to look up by. What has the id of its task is executed by that task alone: it looks up only where its database
 * went back.
 */
export const outsideId = ({
  id,
  executionId,
  mayBeForgotten,
}: Pick<TaskView, 'id' | 'executionId' | 'mayBeForgotten'>): string | undefined =>
  executionId === id && !mayBeForgotten ? undefined : executionId

/** Executions count the effects of one kind on a chain: the next one follows those that were executed. */
export const executedBefore = (
  { effects = [] }: { effects?: readonly Effect[] },
  wanted: { kind: string; chainId: string },
): number =>
  effects.filter(
    ({ kind, status, intent }) =>
      kind === wanted.kind && status === 'confirmed' && intent.chainId === wanted.chainId,
  ).length

type SoughtTask = Pick<TaskView, 'effects' | 'outcome'>
/** Whether a task of no effect of its own looks up what was executed before it: it is refused and ended by nothing. */
export const isLookingUp = ({ effects, outcome }: SoughtTask): boolean =>
  outcome === 'unknown' && !effects.some(isExposed)
/** Whether a cancel or the deadline would still end the task: it is marked before a look-up goes on. */
export const wouldEndUnseen = ({ effects, outcome }: SoughtTask): boolean =>
  outcome !== 'unknown' && !effects.some(isExposed)

/** The data of the task count polls and have a note, which the compiler cannot see in a part of unknown data. */
const ofTask = <Data, Names extends string>(
  result: StepResultOf<{ polls?: number; note: string | null; sought: SoughtExecution | null }, Names>,
) => result as unknown as Result<Data, Names>

/** The look-up has answered: the mark ends before anything is signed, so that a cancel or the deadline comes first. */
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
  /** Undefined where the step that signs says it, as it looks up again. */
  sought?: Pick<SoughtExecution, 'chain_id' | 'kind'> & Partial<SoughtExecution>
}

/**
 * Repeats a look-up that failed, or that found what it cannot read. The mark `unknown` lets nothing else end the task. A
 * marked one that gets no answer is looked up the more rarely the older it is.
 */
export function lookUpAgain<Data, Names extends string>(
  { task, context: { now, steps } }: LookUp<Data, Names>,
  { state, note, sought }: Repeated,
): Result<Data, Names> {
  const polled = { data: task.data as { polls?: number; sought?: SoughtExecution | null } }
  // A later look-up that fails takes nothing back.
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

/** `spendsLedger`: what the task holds is known to the ledger alone. Otherwise it was read where it had left already. */
export async function settleForgotten<Data, Proof, Names extends string>(
  { task, context, spendsLedger = false }: Search<Data, Proof, Names> & { spendsLedger?: boolean },
  { proof, data }: NonNullable<FoundProof<Data, Proof>>,
): Promise<Settled<Data, Names>> {
  const settled = await context.settle({ ...task, data: { ...task.data, ...data } }, proof)
  return settled.spent === undefined || spendsLedger ? settled : { ...settled, spent: 0n }
}
