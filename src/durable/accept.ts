import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { type Random, shardOf, uuidv7 } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Admission, TaskKind, Tx } from '#kernel/task.ts'
import { houseOwner } from '#kernel/task.ts'
import { send } from '#store/query.ts'
import { ledgerFailure, movesToJson, observationsToJson } from './ledger.ts'
import type { Task } from './row.ts'
import { repeated, type Transactions } from './transactions.ts'
import { viewOf } from './view.ts'

type Needs = {
  transactions: Transactions
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

/** Makes the promise: key, task, holds, the feature's own rows and the event commit together or not at all. */
export function acceptor({ transactions, clock, random, instanceId, leaseMs, baseUrl }: Needs) {
  const rowOf = ({ userId, kind, input, admission, key, parentId, leased, runAt }: NewTask): Task => {
    const at = clock.now()
    return {
      ...{
        id: uuidv7(at, random),
        shard: shardOf(userId),
        user_id: userId,
        kind: kind.kind,
        kind_version: kind.version,
      },
      ...{
        status: 'pending',
        state: 'accepted',
        outcome: null,
        step: admission.first,
        data: admission.data,
        input,
      },
      ...{ result: null, error: null, priority: kind.priority, run_at: runAt ?? at, attempts: 0, commits: 0 },
      ...{
        owner: leased ? instanceId : null,
        epoch: leased ? 1 : 0,
        lease_until: null,
        cancel_requested: false,
      },
      ...{ deadline: later(at, admission.deadlineMs ?? deadlineMsDefault), parent_id: parentId ?? null },
      ...{ idempotency_key: key?.key ?? null, created_at: at, updated_at: at, completed_at: null },
    }
  }

  const write = async (on: pg.Pool | Tx, task: Task, { key, admission }: NewTask): Promise<void> => {
    const event = { type: 'task.created', data: viewOf(task, baseUrl()) }
    const body = {
      ...{
        id: task.id,
        shard: task.shard,
        user: task.user_id,
        kind: task.kind,
        version: task.kind_version,
        step: task.step,
      },
      ...{
        data: task.data,
        input: task.input,
        priority: task.priority,
        runAt: task.run_at,
        owner: task.owner,
      },
      ...{
        leaseSeconds: leaseMs / 1000,
        deadline: task.deadline,
        parent: task.parent_id,
        at: task.created_at,
      },
      ...{ key: key?.key, operation: key?.operation, hash: key?.hash },
      observe: observationsToJson(admission.observe ?? []),
      moves: movesToJson(admission.moves?.(task.id) ?? []),
      events: task.user_id === houseOwner ? [] : [event],
    }
    await send(on as pg.Pool, 'select task_accept($1::jsonb)', [JSON.stringify(body)]).catch(
      (error: unknown) => {
        throw ledgerFailure(error)
      },
    )
  }

  return {
    async accept(wanted: NewTask): Promise<Task> {
      const task = rowOf(wanted)
      const { also } = wanted.admission
      if (!also) await repeated(() => write(transactions.pool, task, wanted))
      else
        await transactions.run(async (tx) => {
          await write(tx, task, wanted)
          await also(tx, task.id)
        })
      return task
    },
    /** Inside a transaction of the caller: a task that exists only if the rest of it commits. Nobody has leased it. */
    async enqueue(tx: Tx, wanted: Omit<NewTask, 'leased'>): Promise<string> {
      const task = rowOf({ ...wanted, leased: false })
      await write(tx, task, { ...wanted, leased: false })
      await wanted.admission.also?.(tx, task.id)
      return task.id
    },
  }
}
export type Acceptor = ReturnType<typeof acceptor>
