import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { type Random, shardOf, uuidv7 } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Admission, NewEvent, TaskKind, Tx } from '#kernel/task.ts'
import { systemOwner } from '#kernel/task.ts'
import { jsonText, query, settleAll } from '#store/query.ts'
import { type Committed, type Committer, canSignOnAccept, type SignOnAccept } from './commit.ts'
import { keyedMutex } from './keyed-mutex.ts'
import { movesToJson, snapshotsToJson, toLedgerError } from './ledger.ts'
import { stepView, type Task } from './task-row.ts'
import { createdEvent } from './task-view.ts'
import { retryOnConflict, type Transactions } from './transactions.ts'

type AcceptorDeps = {
  transactions: Transactions
  committer: Pick<Committer, 'acceptAndSign'>
  clock: Clock
  random: Random
  instanceId: string
  leaseMs: number
  baseUrl: () => string
}
export type NewTask = {
  userId: string
  kind: TaskKind
  input: JsonObject
  admission: Admission
  key?: { key: string; operation: string; hash: string }
  parentId?: string
  /** Leased to this instance from the start, so that nobody has to claim it. */
  leased: boolean
  runAt?: Date
}

const deadlineMsDefault = 15 * 60_000
const signOnAcceptMsMax = 3_000

const noop = async () => {}

/** Makes the promise: key, task, holds, the feature's own rows and the event commit together or not at all. */
export function createAcceptor({
  transactions,
  committer,
  clock,
  random,
  instanceId,
  leaseMs,
  baseUrl,
}: AcceptorDeps) {
  const buildTask = ({ userId, kind, input, admission, key, parentId, leased, runAt }: NewTask): Task => {
    const at = clock.now()
    return {
      id: uuidv7(at, random),
      shard: shardOf(userId),
      user_id: userId,
      kind: kind.kind,
      kind_version: kind.version,
      status: 'pending',
      state: 'accepted',
      outcome: null,
      step: admission.first,
      data: admission.data,
      input,
      result: null,
      error: null,
      priority: kind.priority,
      run_at: runAt ?? at,
      attempts: 0,
      commits: 0,
      owner: leased ? instanceId : null,
      epoch: leased ? 1 : 0,
      lease_until: null,
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
    task.user_id === systemOwner ? [] : [createdEvent(task, baseUrl())]

  const acceptanceJson = (task: Task, { key }: NewTask) => ({
    id: task.id,
    shard: task.shard,
    user: task.user_id,
    kind: task.kind,
    version: task.kind_version,
    step: task.step,
    data: task.data,
    input: task.input,
    priority: task.priority,
    runAt: task.run_at,
    owner: task.owner,
    leaseSeconds: leaseMs / 1000,
    deadline: task.deadline,
    parent: task.parent_id,
    at: task.created_at,
    key: key?.key,
    operation: key?.operation,
    hash: key?.hash,
  })

  const write = async (db: pg.Pool | Tx, task: Task, wanted: NewTask, events: NewEvent[]): Promise<void> => {
    const { admission } = wanted
    const moves = admission.moves?.(task.id) ?? []
    const body = {
      ...acceptanceJson(task, wanted),
      snapshots: snapshotsToJson(admission.snapshots ?? []),
      moves: movesToJson(moves),
      events,
    }
    await query(db as pg.Pool, 'select task_accept($1::jsonb)', [jsonText(body)]).catch((error: unknown) => {
      throw toLedgerError(error, moves)
    })
  }

  /** The events come last in every transaction: their lock orders all that happens to a user. */
  const writeAll = async (tx: Tx, task: Task, wanted: NewTask, flush = noop): Promise<void> => {
    const { writes } = wanted.admission
    if (!writes) return void (await settleAll([write(tx, task, wanted, creationEvents(task)), flush()]))
    // Every lock of the caps and budgets comes before those of the ledger, as where a task ends. `also` has more than
    // one statement, so it must have ended: in turns with the ledger's they would wait for each other's rows.
    await writes(tx, task.id)
    await write(tx, task, wanted, [])
    const events = query(tx, 'select user_event_append($1, $2, $3::jsonb, $4)', [
      task.user_id,
      task.id,
      jsonText(creationEvents(task)),
      task.created_at,
    ])
    await settleAll([events, flush()])
  }

  /** The first step of a task that does not exist yet; undefined where it does anything but sign. */
  const trySignFirstStep = async (
    task: Task,
    { admission, kind, leased }: NewTask,
  ): Promise<SignOnAccept | undefined> => {
    if (!admission.signOnAccept || !leased) return undefined
    if (admission.snapshots || admission.moves) throw new Error(`${kind.kind} opens, and moves money by it`)
    const signal = AbortSignal.timeout(signOnAcceptMsMax)
    const result = await kind.steps[task.step]?.(stepView(task, []), { now: task.created_at, signal })
    return result && canSignOnAccept(result) ? result : undefined
  }

  /** Those who sign for one signer wait here for each other, and not in as many connections. */
  const mutex = keyedMutex()
  /** What the step has found is old by then: the promise is made alone, and the step is done again after it. */
  const isLate = (task: Task) => clock.now().getTime() - task.created_at.getTime() > signOnAcceptMsMax

  return {
    async accept(wanted: NewTask): Promise<Committed> {
      const task = buildTask(wanted)
      const signing = await trySignFirstStep(task, wanted)
      if (signing) {
        const { kind, chain, signer } = signing.intend.nonceSequence
        const accept = async () =>
          isLate(task) ? undefined : committer.acceptAndSign(task, signing, acceptanceJson(task, wanted))
        const accepted = await mutex(`${kind} ${chain} ${signer}`, accept)
        if (accepted) return accepted
      }
      if (wanted.admission.writes)
        await transactions.pipelined(noop, (tx, _, commit) => writeAll(tx, task, wanted, commit))
      else await retryOnConflict(() => write(transactions.pool, task, wanted, creationEvents(task)))
      return { task }
    },
    /** Inside a transaction of the caller: a task that exists only if the rest of it commits. Nobody has leased it. */
    async enqueue(tx: Tx, wanted: Omit<NewTask, 'leased'>): Promise<string> {
      const task = buildTask({ ...wanted, leased: false })
      await writeAll(tx, task, { ...wanted, leased: false })
      return task.id
    },
  }
}
export type Acceptor = ReturnType<typeof createAcceptor>
