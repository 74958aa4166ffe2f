import type { Committed } from '#durable/run/write-tasks.ts'
import type { Task } from '#durable/task/task-row.ts'
import { retryOnConflict } from '#durable/transactions.ts'
import { batchByArrival } from '#kernel/arrival-batches.ts'
import { createKeyedMutex, type KeyedMutex } from '#kernel/keyed-mutex.ts'
import type { Tx } from '#kernel/task.ts'
import { isStatementTimeout } from '#store/conflict.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { type ApprovedTask, resumeTask } from './accept-approved.ts'
import { acceptInTransaction, type Decision } from './accept-in-transaction.ts'
import { acceptPromises, type NewTask, refusalOf, type TaskPromise } from './acceptance.ts'
import { buildPromise, type TaskAcceptanceDeps } from './build-acceptance.ts'
import { accountBusy } from './faults.ts'
import { signFirstStep } from './first-signature.ts'
import { isLockTimeout, type LockWait, startLockWait } from './lock-wait.ts'

export type { NewTask } from './acceptance.ts'

export type TaskAcceptance = {
  /** Commits key, task, limits, gas, hold, signature, rows of the feature and events, or throws why it was refused. */
  accept(wanted: NewTask): Promise<Committed>
  /** Accepts a task that has waited, in place of its waiting row; undefined where it waits no more. */
  resume(waiting: Task, approved: ApprovedTask): Promise<Committed | undefined>
  /** Inserts a task that any instance may claim, in the caller's transaction. */
  enqueue(tx: Tx, wanted: Omit<NewTask, 'leased'>): Promise<string>
  /** The same for several tasks, and all of them or none. */
  enqueueAll(tx: Tx, wanted: readonly Omit<NewTask, 'leased'>[]): Promise<string[]>
}

const batchSizeMax = 32
/** A grant is outdated where the limits changed, or other promises of the user were counted, in between. */
const grantsMax = 10

type AcceptanceContext = {
  deps: TaskAcceptanceDeps
  /** The batches of each nonce sequence without gaps, and of single statements. */
  batches: Map<string, (promise: TaskPromise) => Promise<Decision>>
  /** By nonce sequence with gaps. */
  turns: KeyedMutex
  /** By user: approved tasks of one user lock the same rows, and those that wait keep no connection. */
  resumes: KeyedMutex
}

export function createTaskAcceptance(deps: TaskAcceptanceDeps): TaskAcceptance {
  const context: AcceptanceContext = {
    deps,
    batches: new Map(),
    turns: createKeyedMutex(),
    resumes: createKeyedMutex(),
  }
  return {
    accept: (wanted) => acceptTask(context, wanted).catch(throwIfBusy),
    resume: (waiting, approved) =>
      context.resumes.run(waiting.user_id, () => resumeTask(deps, waiting, approved)),
    enqueue: async (tx, wanted) => (await enqueueTasks(deps, tx, [wanted]))[0]!,
    enqueueAll: (tx, wanted) => enqueueTasks(deps, tx, wanted),
  }
}

/** Rows of the user were locked for as long as a statement may take: nothing was accepted. */
function throwIfBusy(error: unknown): never {
  throw isStatementTimeout(error) ? accountBusy({ cause: error }) : error
}

async function acceptTask(context: AcceptanceContext, wanted: NewTask): Promise<Committed> {
  const { deps, turns } = context
  const plain = buildPromise(deps, wanted)
  const promise = (await signFirstStep({ ...deps, turns }, plain)) ?? plain
  const { check } = promise
  let grant = promise.grant ?? (await check?.())
  for (let grants = 1; ; grants++) {
    const { verdict, signature = promise.signature } = await decide(context, { ...promise, grant })
    if (verdict.verdict === 'accepted') {
      const { task, events } = promise
      const committedEvents = verdict.last === null ? undefined : { last: verdict.last, events }
      return {
        task,
        ...(committedEvents && { committedEvents }),
        ...(signature && { signed: signature.effect }),
      }
    }
    if (verdict.verdict !== 'policy' || !check || grants === grantsMax) throw refusalOf(verdict, wanted)
    // The limits, a switch or the sum of the day have changed: this throws the fault, or grants by the present ones.
    grant = await check()
  }
}

/** Decides together with the promises that arrive while the last batch of its sort is decided. */
function decide({ deps, batches }: AcceptanceContext, promise: TaskPromise): Promise<Decision> {
  const { inOrder } = promise
  const name = inOrder ? Object.values(inOrder.sequence).join(' ') : 'statement'
  let batch = batches.get(name)
  if (!batch) {
    batch = batchByArrival<TaskPromise, Decision>({
      async run(promises, option) {
        const lockWait = await startLockWait(deps.transactions.pool, promises[0]?.task.user_id, option)
        return inOrder
          ? acceptInTransaction(deps, promises, lockWait)
          : acceptTogether(deps, promises, lockWait)
      },
      sizeMax: batchSizeMax,
      // Two promises of one user would spend the same balance and the same limits.
      keyOf: ({ task }) => task.user_id,
      ownerOf: ({ task }) => task.user_id,
      // The reply may be lost while the commit was not.
      isFinal: isDatabaseUnavailable,
      isBlocked: isLockTimeout,
    })
    batches.set(name, batch)
  }
  return batch(promise)
}

async function acceptTogether(
  { transactions, instanceId }: TaskAcceptanceDeps,
  promises: readonly TaskPromise[],
  lockWait: LockWait,
): Promise<Decision[]> {
  const verdicts = await retryOnConflict(() =>
    acceptPromises(transactions.pool, instanceId, promises, lockWait),
  )
  return verdicts.map((verdict) => ({ verdict }))
}

type UnleasedTask = Omit<NewTask, 'leased'>

async function enqueueTasks(
  deps: TaskAcceptanceDeps,
  tx: Tx,
  wanted: readonly UnleasedTask[],
): Promise<string[]> {
  const promises = await Promise.all(
    wanted.map(async (each) => {
      const promise = buildPromise(deps, { ...each, leased: false })
      return { ...promise, grant: promise.grant ?? (await promise.check?.()) }
    }),
  )
  for (const together of withDistinctUsers(promises)) {
    const verdicts = await acceptPromises(tx, deps.instanceId, together)
    for (const [n, verdict] of verdicts.entries())
      if (verdict.verdict !== 'accepted') throw refusalOf(verdict, together[n]!.wanted)
  }
  return promises.map(({ task }) => task.id)
}

/** Two promises of one user would spend the same balance and the same limits. */
function withDistinctUsers(promises: readonly TaskPromise[]): TaskPromise[][] {
  const rounds: Map<string, TaskPromise>[] = []
  for (const promise of promises) {
    const userId = promise.task.user_id
    const free = rounds.find((round) => !round.has(userId))
    if (free) free.set(userId, promise)
    else rounds.push(new Map([[userId, promise]]))
  }
  return rounds.map((round) => [...round.values()])
}
