import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { type Random, shardOf, uuidv7 } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Admission, NewEvent, TaskKind, Tx } from '#kernel/task.ts'
import { houseOwner } from '#kernel/task.ts'
import { allEnded, jsonText, send } from '#store/query.ts'
import { type Committed, type Committer, isOpening, type Opens } from './commit.ts'
import { ledgerFailure, movesToJson, observationsToJson } from './ledger.ts'
import { stepView, type Task } from './row.ts'
import { repeated, type Transactions } from './transactions.ts'
import { keyedTurns } from './turns.ts'
import { createdEvent } from './view.ts'

type Needs = {
  transactions: Transactions
  committer: Pick<Committer, 'open'>
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
const openingMsMost = 3_000

const nothing = async () => {}

/** Makes the promise: key, task, holds, the feature's own rows and the event commit together or not at all. */
export function acceptor({ transactions, committer, clock, random, instanceId, leaseMs, baseUrl }: Needs) {
  const rowOf = ({ userId, kind, input, admission, key, parentId, leased, runAt }: NewTask): Task => {
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

  const eventsOf = (task: Task): NewEvent[] =>
    task.user_id === houseOwner ? [] : [createdEvent(task, baseUrl())]

  const promiseJson = (task: Task, { key }: NewTask) => ({
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

  const write = async (on: pg.Pool | Tx, task: Task, wanted: NewTask, events: NewEvent[]): Promise<void> => {
    const { admission } = wanted
    const moves = admission.moves?.(task.id) ?? []
    const body = {
      ...promiseJson(task, wanted),
      observe: observationsToJson(admission.observe ?? []),
      moves: movesToJson(moves),
      events,
    }
    await send(on as pg.Pool, 'select task_accept($1::jsonb)', [jsonText(body)]).catch((error: unknown) => {
      throw ledgerFailure(error, moves)
    })
  }

  /** The events come last in every transaction: their lock orders all that happens to a user. */
  const writeAll = async (tx: Tx, task: Task, wanted: NewTask, commit = nothing): Promise<void> => {
    const { also } = wanted.admission
    if (!also) return void (await allEnded([write(tx, task, wanted, eventsOf(task)), commit()]))
    // Every lock of the caps and budgets comes before those of the ledger, as where a task ends. `also` has more than
    // one statement, so it must have ended: in turns with the ledger's they would wait for each other's rows.
    await also(tx, task.id)
    await write(tx, task, wanted, [])
    const events = send(tx, 'select outbox_add($1, $2, $3::jsonb, $4)', [
      task.user_id,
      task.id,
      jsonText(eventsOf(task)),
      task.created_at,
    ])
    await allEnded([events, commit()])
  }

  /** The first step of a task that does not exist yet; undefined where it does anything but sign. */
  const openingOf = async (task: Task, { admission, kind, leased }: NewTask): Promise<Opens | undefined> => {
    if (!admission.opens || !leased) return undefined
    if (admission.observe || admission.moves) throw new Error(`${kind.kind} opens, and moves money by it`)
    const signal = AbortSignal.timeout(openingMsMost)
    const result = await kind.steps[task.step]?.(stepView(task, []), { now: task.created_at, signal })
    return result && isOpening(result) ? result : undefined
  }

  /** Those who sign for one signer wait here for each other, and not in as many connections. */
  const turns = keyedTurns()
  /** What the step has found is old by then: the promise is made alone, and the step is done again after it. */
  const isLate = (task: Task) => clock.now().getTime() - task.created_at.getTime() > openingMsMost

  return {
    async accept(wanted: NewTask): Promise<Committed> {
      const task = rowOf(wanted)
      const opening = await openingOf(task, wanted)
      if (opening) {
        const { kind, chain, signer } = opening.intend.lane
        const open = async () =>
          isLate(task) ? undefined : committer.open(task, opening, promiseJson(task, wanted))
        const opened = await turns(`${kind} ${chain} ${signer}`, open)
        if (opened) return opened
      }
      if (wanted.admission.also)
        await transactions.runAfter(nothing, (tx, _, commit) => writeAll(tx, task, wanted, commit))
      else await repeated(() => write(transactions.pool, task, wanted, eventsOf(task)))
      return { task }
    },
    /** Inside a transaction of the caller: a task that exists only if the rest of it commits. Nobody has leased it. */
    async enqueue(tx: Tx, wanted: Omit<NewTask, 'leased'>): Promise<string> {
      const task = rowOf({ ...wanted, leased: false })
      await writeAll(tx, task, { ...wanted, leased: false })
      return task.id
    },
  }
}
export type Acceptor = ReturnType<typeof acceptor>
