import type { Committed } from '#durable/run/write-tasks.ts'
import type { Task } from '#durable/task/task-row.ts'
import { retryOnConflict } from '#durable/transactions.ts'
import { batchByArrival } from '#kernel/async/arrival-batches.ts'
import { createKeyedMutex, type KeyedMutex } from '#kernel/async/keyed-mutex.ts'
import type { Tx } from '#kernel/task/task.ts'
import { batchLockWaitMs, isLockTimeout, isStatementTimeout } from '#store/timeouts.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { type ApprovedTask, resumeTask } from './accept-approved.ts'
import { acceptInTransaction, type Decision } from './accept-in-transaction.ts'
import { type Acceptance, insertAcceptances, type NewTask, refusalOf, type Verdict } from './acceptance.ts'
import { buildAcceptance, type IntakeDeps } from './build-acceptance.ts'
import { accountBusy } from './faults.ts'
import { type LockWait, startLockWait } from './lock-waiters.ts'
import { signFirstStep } from './sign-first-step.ts'

export type { NewTask } from './acceptance.ts'

export type TaskIntake = {
  /** Commits a task with key, limits, gas, hold, signature, feature rows and events, or throws why it is refused. */
  accept(wanted: NewTask): Promise<Committed>
  /** Accepts an approved task in place of its waiting row; returns undefined if the task no longer waits. */
  resume(waiting: Task, approved: ApprovedTask): Promise<Committed | undefined>
  /** Inserts a task that any instance may claim, in the caller's transaction. */
  enqueue(tx: Tx, wanted: Omit<NewTask, 'leased'>): Promise<string>
  /** Inserts several tasks that any instance may claim, all or none, in the caller's transaction. */
  enqueueAll(tx: Tx, wanted: readonly Omit<NewTask, 'leased'>[]): Promise<string[]>
  /**
   * Inserts the tasks whose idempotency key is free, and returns undefined for the others, which exist already. Fails
   * if a row stays locked, or if a task is refused for another reason. The limit of the wait for a lock holds for the
   * rest of the transaction; `{}` leaves the limit that the transaction has.
   */
  enqueueOnce(
    tx: Tx,
    wanted: readonly Omit<NewTask, 'leased'>[],
    lockWait?: LockWait,
  ): Promise<(string | undefined)[]>
}

const batchSizeMax = 32
/**
 * The most grants that one acceptance asks of the policy. A grant is outdated once the user's limits change, or once
 * another acceptance that counts against these limits is committed.
 */
const grantsMax = 10

type AcceptanceContext = {
  deps: IntakeDeps
  batches: Map<string, (acceptance: Acceptance) => Promise<Decision>>
  turns: KeyedMutex
  /** A mutex by user: approved tasks of one user lock the same rows, and a waiting one holds no connection. */
  resumes: KeyedMutex
}

export function createTaskIntake(deps: IntakeDeps): TaskIntake {
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
    async enqueueOnce(tx, wanted, lockWait = { lockWaitMs: batchLockWaitMs }) {
      const decided = await insertUnleased(deps, tx, wanted, lockWait)
      return decided.map((each) => (each.verdict.verdict === 'key_taken' ? undefined : acceptedId(each)))
    },
  }
}

/** Turns a statement timeout into a retryable fault: the user's rows stayed locked, so nothing was accepted. */
function throwIfBusy(error: unknown): never {
  throw isStatementTimeout(error) ? accountBusy({ cause: error }) : error
}

async function acceptTask(context: AcceptanceContext, wanted: NewTask): Promise<Committed> {
  const { deps, turns } = context
  const plain = buildAcceptance(deps, wanted)
  const acceptance = (await signFirstStep({ ...deps, turns }, plain)) ?? plain
  const { check } = acceptance
  let grant = acceptance.grant ?? (await check?.())
  for (let grants = 1; ; grants++) {
    const { verdict, signature = acceptance.signature } = await decide(context, { ...acceptance, grant })
    if (verdict.verdict === 'accepted') {
      const { task, events } = acceptance
      const committedEvents = verdict.last === null ? undefined : { last: verdict.last, events }
      return {
        task,
        ...(committedEvents && { committedEvents }),
        ...(signature && { signed: signature.effect }),
      }
    }
    if (verdict.verdict !== 'policy' || !check || grants === grantsMax) throw refusalOf(verdict, wanted)
    // The policy's limits, switches or day's sum changed after the grant: `check` throws the fault, or grants by the
    // present limits.
    grant = await check()
  }
}

/** Decides an acceptance in one batch with others of its sort that arrive while the previous batch is decided. */
function decide({ deps, batches }: AcceptanceContext, acceptance: Acceptance): Promise<Decision> {
  const { inOrder } = acceptance
  const name = inOrder ? Object.values(inOrder.sequence).join(' ') : 'statement'
  let batch = batches.get(name)
  if (!batch) {
    batch = batchByArrival<Acceptance, Decision>({
      async run(acceptances, option) {
        const lockWait = await startLockWait(deps.transactions.pool, acceptances[0]?.task.user_id, option)
        return inOrder
          ? acceptInTransaction(deps, acceptances, lockWait)
          : acceptTogether(deps, acceptances, lockWait)
      },
      sizeMax: batchSizeMax,
      keyOf: ({ task }) => task.user_id,
      ownerOf: ({ task }) => task.user_id,
      // The reply of the database may be lost although the commit was not, so the batch is not tried again.
      isFinal: isDatabaseUnavailable,
      isBlocked: isLockTimeout,
    })
    batches.set(name, batch)
  }
  return batch(acceptance)
}

async function acceptTogether(
  { transactions, instanceId }: IntakeDeps,
  acceptances: readonly Acceptance[],
  lockWait: LockWait,
): Promise<Decision[]> {
  const verdicts = await retryOnConflict(() =>
    insertAcceptances(transactions.pool, instanceId, acceptances, lockWait),
  )
  return verdicts.map((verdict) => ({ verdict }))
}

type UnleasedTask = Omit<NewTask, 'leased'>

type Decided = { acceptance: Acceptance; verdict: Verdict }

const enqueueTasks = async (deps: IntakeDeps, tx: Tx, wanted: readonly UnleasedTask[]): Promise<string[]> =>
  (await insertUnleased(deps, tx, wanted)).map(acceptedId)

function acceptedId({ acceptance: { task, wanted }, verdict }: Decided): string {
  if (verdict.verdict !== 'accepted') throw refusalOf(verdict, wanted)
  return task.id
}

/** Inserts tasks that no instance runs yet, and returns the decisions in the order of the tasks. */
async function insertUnleased(
  deps: IntakeDeps,
  tx: Tx,
  wanted: readonly UnleasedTask[],
  lockWait: LockWait = {},
): Promise<Decided[]> {
  const acceptances = await Promise.all(
    wanted.map(async (each) => {
      const acceptance = buildAcceptance(deps, { ...each, leased: false })
      return { ...acceptance, grant: acceptance.grant ?? (await acceptance.check?.()) }
    }),
  )
  const verdicts = new Map<Acceptance, Verdict>()
  for (const together of withDistinctUsers(acceptances)) {
    const decided = await insertAcceptances(tx, deps.instanceId, together, lockWait)
    for (const [n, verdict] of decided.entries()) verdicts.set(together[n]!, verdict)
  }
  return acceptances.map((acceptance) => ({ acceptance, verdict: verdicts.get(acceptance)! }))
}

/**
 * Groups acceptances by statement: two that reserve for one user would spend the same balance and limits, so no
 * statement has both. Acceptances that reserve nothing share a statement.
 */
function withDistinctUsers(acceptances: readonly Acceptance[]): Acceptance[][] {
  const plain = acceptances.filter((each) => !reserves(each))
  const rounds: Map<string, Acceptance>[] = []
  for (const acceptance of acceptances.filter(reserves)) {
    const userId = acceptance.task.user_id
    const free = rounds.find((round) => !round.has(userId))
    if (free) free.set(userId, acceptance)
    else rounds.push(new Map([[userId, acceptance]]))
  }
  return [plain, ...rounds.map((round) => [...round.values()])].filter(({ length }) => length > 0)
}

const reserves = ({ wanted: { admission, request } }: Acceptance): boolean =>
  Boolean(admission.spend || admission.draw || admission.orders || request)
