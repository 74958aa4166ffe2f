import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { type Random, shardOf, uuidv7 } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import { createKeyedMutex, type KeyedMutex } from '#kernel/keyed-mutex.ts'
import {
  type AccountRef,
  type Admission,
  externalAccount,
  type GasCharge,
  type Move,
  type NewEvent,
  spendKey,
  systemOwner,
  type TaskKind,
  type Tx,
} from '#kernel/task.ts'
import { jsonText, query, settleAll } from '#store/query.ts'
import { type Committed, type Committer, canSignOnAccept, type SignOnAccept } from './commit.ts'
import { movesToJson, snapshotsToJson, toLedgerError } from './ledger.ts'
import { stepView, type Task } from './task-row.ts'
import { taskEvent } from './task-view.ts'
import { retryOnConflict, type Transactions } from './transactions.ts'

export type TaskAcceptanceDeps = {
  transactions: Transactions
  committer: Pick<Committer, 'acceptAndSign'>
  clock: Clock
  random: Random
  instanceId: string
}
export type NewTask = {
  userId: string
  kind: TaskKind
  input: JsonObject
  admission: Admission
  key?: { key: string; operation: string; hash: string }
  parentId?: string
  /** Inserted as a task that this instance runs, which needs no claim then. */
  leased: boolean
  runAt?: Date
}

const deadlineMsDefault = 15 * 60_000
const signOnAcceptMsMax = 3_000

const noop = async () => {}

export type TaskAcceptance = {
  /** Commits key, task, holds, the rows of the feature and the event in one transaction. */
  accept(wanted: NewTask): Promise<Committed>
  /** Inserts a task that any instance may claim, in the caller's transaction. */
  enqueue(tx: Tx, wanted: Omit<NewTask, 'leased'>): Promise<string>
}
type AcceptanceContext = {
  deps: TaskAcceptanceDeps
  /** Serialises signing per signer in memory, so that waiters do not each hold a connection. */
  mutex: KeyedMutex
}

export function createTaskAcceptance(deps: TaskAcceptanceDeps): TaskAcceptance {
  const context: AcceptanceContext = { deps, mutex: createKeyedMutex() }
  return {
    accept: (wanted) => acceptTask(context, expandSpend(deps, wanted)),
    async enqueue(tx, given) {
      const wanted = expandSpend(deps, { ...given, leased: false })
      const task = buildTask(deps, wanted)
      await writeAll(deps, tx, { task, wanted })
      return task.id
    },
  }
}

/** The snapshot, the hold, and the reservations of a spend. */
function expandSpend({ clock }: TaskAcceptanceDeps, wanted: NewTask): NewTask {
  const { admission } = wanted
  const { spend } = admission
  if (!spend) return wanted
  const { account, amountUnits, seen, gas, token = { symbol: '', decimals: 0, address: '' } } = spend
  const holdOf = (taskId: string, debit: AccountRef): Move => ({
    move: 'hold',
    key: spendKey(taskId),
    debit,
    credit: externalAccount(debit.asset),
    amountUnits: amountUnits ?? 0n,
    reason: spend.action.operation,
    token,
  })
  return {
    ...wanted,
    admission: {
      ...admission,
      ...(account &&
        seen && { snapshots: [{ account, totalUnits: seen.totalUnits, version: seen.version }] }),
      ...(account && amountUnits && { moves: (taskId: string) => [holdOf(taskId, account)] }),
      async writes(tx, taskId) {
        await spend.reserve(tx, taskId)
        if (gas) await reserveGas(tx, taskId, wanted.userId, { gas, now: clock.now() })
        await admission.writes?.(tx, taskId)
      },
    },
  }
}

async function reserveGas(
  tx: Tx,
  taskId: string,
  userId: string,
  { gas, now }: { gas: GasCharge; now: Date },
): Promise<void> {
  const { chainId, wei, budgetWei } = gas
  const [row] = await query<{ wei: string | null; used: string }>(
    tx,
    `select sponsor_reserve($1, $2, $3, $4::date, $5::numeric, $6::numeric) as wei,
       coalesce((select wei from sponsor_day where user_id = $2 and chain_id = $3 and day = $4::date), 0) as used`,
    [taskId, userId, chainId, now.toISOString().slice(0, 10), wei, budgetWei],
  )
  if (row?.wei == null) throw gas.refuse(BigInt(row?.used ?? 0))
}

async function acceptTask({ deps, mutex }: AcceptanceContext, wanted: NewTask): Promise<Committed> {
  const { transactions, committer } = deps
  const task = buildTask(deps, wanted)
  const signing = await trySignFirstStep(task, wanted)
  if (signing) {
    const { kind, chain, signer } = signing.sign.nonceSequence
    const accept = async () =>
      isLate(deps, task)
        ? undefined
        : committer.acceptAndSign(task, signing, acceptanceJson(deps, task, wanted))
    const accepted = await mutex.run(`${kind} ${chain} ${signer}`, accept)
    if (accepted) return accepted
  }
  if (wanted.admission.writes)
    await transactions.pipelined(noop, (tx, _, commit) => writeAll(deps, tx, { task, wanted, flush: commit }))
  else
    await retryOnConflict(() =>
      writeAcceptance(deps, transactions.pool, { task, wanted, events: creationEvents(task) }),
    )
  return { task }
}

function buildTask({ clock, random }: TaskAcceptanceDeps, wanted: NewTask): Task {
  const { userId, kind, input, admission, key, parentId, leased } = wanted
  const at = clock.now()
  return {
    id: uuidv7(at, random),
    shard: shardOf(userId),
    user_id: userId,
    kind: kind.kind,
    kind_version: kind.version,
    status: leased ? 'running' : 'pending',
    state: 'accepted',
    outcome: null,
    step: admission.first,
    data: admission.data,
    input,
    result: null,
    error: null,
    attempts: 0,
    version: 1,
    cancel_requested: false,
    deadline: later(at, admission.deadlineMs ?? deadlineMsDefault),
    parent_id: parentId ?? null,
    idempotency_key: key?.key ?? null,
    created_at: at,
    updated_at: at,
    completed_at: null,
  }
}

const creationEvents = (task: Task): NewEvent[] =>
  task.user_id === systemOwner ? [] : [taskEvent('task.created', task)]

/** The argument of the database function `task_accept`, but for moves and events. */
const acceptanceJson = (
  { instanceId }: TaskAcceptanceDeps,
  task: Task,
  { key, kind, leased, runAt = task.created_at }: NewTask,
) => ({
  id: task.id,
  shard: task.shard,
  user: task.user_id,
  kind: task.kind,
  version: task.kind_version,
  step: task.step,
  data: task.data,
  input: task.input,
  priority: kind.priority,
  runAt,
  owner: leased ? instanceId : null,
  deadline: task.deadline,
  parent: task.parent_id,
  at: task.created_at,
  key: key?.key,
  operation: key?.operation,
  hash: key?.hash,
})

type AcceptedTask = { task: Task; wanted: NewTask }

async function writeAcceptance(
  deps: TaskAcceptanceDeps,
  db: pg.Pool | Tx,
  { task, wanted, events }: AcceptedTask & { events: NewEvent[] },
): Promise<void> {
  const { admission } = wanted
  const moves = admission.moves?.(task.id) ?? []
  const body = {
    ...acceptanceJson(deps, task, wanted),
    snapshots: snapshotsToJson(admission.snapshots ?? []),
    moves: movesToJson(moves),
    events,
  }
  await query(db as pg.Pool, 'select task_accept($1::jsonb)', [jsonText(body)]).catch((error: unknown) => {
    throw toLedgerError(error, moves)
  })
}

/** Events come last in every transaction: their lock orders everything that happens to a user. */
async function writeAll(
  deps: TaskAcceptanceDeps,
  tx: Tx,
  { task, wanted, flush = noop }: AcceptedTask & { flush?: () => Promise<void> },
): Promise<void> {
  const { writes } = wanted.admission
  const events = creationEvents(task)
  if (!writes) return void (await settleAll([writeAcceptance(deps, tx, { task, wanted, events }), flush()]))
  // Locks of caps and budgets precede those of the ledger, as at the end of a task. `writes` is awaited first: its
  // statements, interleaved with the ledger's, would deadlock.
  await writes(tx, task.id)
  await writeAcceptance(deps, tx, { task, wanted, events: [] })
  const append = query(tx, 'select user_event_append($1, $2, $3::jsonb, $4)', [
    task.user_id,
    task.id,
    jsonText(events),
    task.created_at,
  ])
  await settleAll([append, flush()])
}

/** Runs the first step before its task exists; undefined where the step does more than sign. */
async function trySignFirstStep(
  task: Task,
  { admission, kind, leased }: NewTask,
): Promise<SignOnAccept | undefined> {
  if (!admission.signOnAccept || !leased) return undefined
  if (admission.snapshots || admission.moves)
    throw new Error(`${kind.kind} signs on acceptance and must not move money there`)
  const signal = AbortSignal.timeout(signOnAcceptMsMax)
  const result = await kind.steps[task.step]?.(stepView(task, []), { now: task.created_at, signal })
  return result && canSignOnAccept(result) ? result : undefined
}

/** The result of the first step is outdated: the task is accepted without it, and the step runs again. */
const isLate = ({ clock }: TaskAcceptanceDeps, task: Task) =>
  clock.now().getTime() - task.created_at.getTime() > signOnAcceptMsMax
