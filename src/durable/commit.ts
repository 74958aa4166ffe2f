import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { EffectUpdate, Lane, Move, NewCarrier, NewEvent, StepResult, Tx } from '#kernel/task.ts'
import { houseOwner } from '#kernel/task.ts'
import { send } from '#store/query.ts'
import { ledgerFailure, movesToJson } from './ledger.ts'
import { asTask, isEnded, type Task } from './row.ts'
import { repeated, type Transactions } from './transactions.ts'
import { viewOf } from './view.ts'

/** What a step's result makes of the task, before it is written. */
type Change = {
  status: Task['status']
  state: string
  outcome: Task['outcome']
  step: string
  attempts: number
  data: JsonObject
  result?: JsonObject
  error?: JsonObject
  parkMs?: number
  moves: Move[]
  effects: EffectUpdate[]
  events: NewEvent[]
}

type Needs = {
  transactions: Transactions
  clock: Clock
  random: Random
  instanceId: string
  baseUrl: () => string
}
type Laned = Extract<StepResult, { intend: unknown }> | Extract<StepResult, { replace: unknown }>

function changeOf(task: Task, result: StepResult): Change {
  const rest = {
    data: result.data ?? {},
    moves: result.moves ?? [],
    effects: result.effects ?? [],
    events: result.events ?? [],
  }
  if ('end' in result) {
    return {
      ...rest,
      status: result.end,
      state: result.end === 'completed' ? 'done' : result.error.code,
      outcome: result.outcome,
      step: task.step,
      attempts: 0,
      ...(result.result && { result: result.result }),
      ...('error' in result && { error: { retryable: false, ...result.error } }),
    }
  }
  if ('park' in result) {
    const { afterMs, next } = result.park
    const state = result.state ?? 'waiting'
    return {
      ...rest,
      status: 'running',
      state,
      outcome: result.outcome ?? null,
      step: next,
      attempts: 0,
      parkMs: afterMs,
    }
  }
  const state =
    result.state ??
    ('intend' in result || 'replace' in result ? 'signed' : task.state === 'accepted' ? 'held' : task.state)
  return { ...rest, status: 'running', state, outcome: null, step: result.next, attempts: 0 }
}

function eventsOf(before: Task, after: Task, baseUrl: string, extra: NewEvent[]): NewEvent[] {
  const seen =
    isEnded(after) ||
    before.state !== after.state ||
    before.status !== after.status ||
    before.outcome !== after.outcome
  const type = isEnded(after) ? `task.${after.status}` : 'task.updated'
  return [...(seen ? [{ type, data: viewOf(after, baseUrl) as unknown as JsonObject }] : []), ...extra]
}

/** Writes the result of a step, fenced by owner and epoch. */
export function committer({ transactions, clock, random, instanceId, baseUrl }: Needs) {
  const write = async (
    on: pg.Pool | Tx,
    task: Task,
    done: string,
    change: Change,
    extra: object = {},
  ): Promise<Task | undefined> => {
    const at = clock.now()
    const ended = change.status !== 'running'
    const after: Task = {
      ...task,
      ...{
        status: change.status,
        state: change.state,
        outcome: change.outcome,
        step: change.step,
        attempts: change.attempts,
      },
      data: { ...task.data, ...change.data },
      result: change.result ?? task.result,
      error: change.error ?? task.error,
      run_at: change.parkMs === undefined ? task.run_at : later(at, change.parkMs),
      owner: ended || change.parkMs !== undefined ? null : task.owner,
      commits: task.commits + 1,
      updated_at: at,
      completed_at: ended ? at : null,
    }
    const body = {
      ...{
        id: task.id,
        owner: instanceId,
        epoch: task.epoch,
        commits: task.commits,
        at,
        done,
        attempt: task.attempts + 1,
      },
      ...{
        status: after.status,
        state: after.state,
        outcome: after.outcome,
        step: after.step,
        attempts: after.attempts,
      },
      ...{ data: change.data, result: change.result, error: change.error, parkMs: change.parkMs },
      runAt: change.parkMs === undefined ? undefined : after.run_at,
      moves: movesToJson(change.moves),
      effects: change.effects,
      events: task.user_id === houseOwner ? [] : eventsOf(task, after, baseUrl(), change.events),
      ...extra,
    }
    const [row] = await send<{ task_commit: boolean }>(on as pg.Pool, 'select task_commit($1::jsonb)', [
      JSON.stringify(body),
    ]).catch((error: unknown) => {
      throw ledgerFailure(error)
    })
    return row?.task_commit ? after : undefined
  }

  /** The row lock of the task comes first, so that locks are always taken in one order. */
  const fenced = async <T>(task: Task, run: (tx: Tx) => Promise<T>): Promise<T | undefined> =>
    transactions.run(async (tx) => {
      const held = await send(
        tx,
        `select id from task where id = $1 and epoch = $2 and owner = $3 and status in ('pending', 'running') for update`,
        [task.id, task.epoch, instanceId],
      )
      return held.length === 1 ? run(tx) : undefined
    })

  const takeNonce = async (tx: Tx, { kind, chain, signer }: Lane, floor: bigint): Promise<bigint> => {
    const [row] = await send<{ nonce: string | bigint }>(
      tx,
      `update lane set next = greatest(next, $4::bigint) + 1
       where kind = $1 and chain = $2 and signer = $3 returning next - 1 as nonce`,
      [kind, chain, signer, floor],
    )
    if (!row) throw new Error(`lane ${kind} ${chain} ${signer} was not opened`)
    return BigInt(row.nonce)
  }

  const carrierJson = (carrier: NewCarrier, effectId: string, { kind, chain, signer }: Lane) => ({
    ...{
      effectId,
      raw: carrier.raw,
      extId: carrier.extId,
      nonce: String(carrier.nonce),
      laneKind: kind,
      chain,
      signer,
    },
  })

  const commitSigned = async (
    task: Task,
    done: string,
    change: Change,
    result: Laned,
    tx: Tx,
  ): Promise<Task | undefined> => {
    if ('replace' in result) {
      const { effectId, lane, build } = result.replace
      return write(tx, task, done, change, { carrier: carrierJson(await build(tx), effectId, lane) })
    }
    const { lane, build, floor = 0n, refused } = result.intend
    const nonce = await takeNonce(tx, lane, floor)
    const built = await build(nonce, tx).catch((error: unknown) => {
      throw refused && error instanceof Fault && !error.retryable ? new SigningRefused(refused(error)) : error
    })
    const effect = { ...built.effect, id: uuidv7(clock.now(), random) }
    return write(tx, task, done, change, { effect, carrier: carrierJson(built.carrier, effect.id, lane) })
  }

  return {
    /** The task as committed; undefined where this instance no longer owns it, or where a cancel came first. */
    async step(task: Task, done: string, result: StepResult): Promise<Task | undefined> {
      const change = changeOf(task, result)
      const laned = 'intend' in result || 'replace' in result
      if (!laned && !result.also) return repeated(() => write(transactions.pool, task, done, change))
      return fenced(task, async (tx) => {
        await result.also?.(tx)
        const after = laned
          ? await commitSigned(task, done, change, result, tx)
          : await write(tx, task, done, change)
        // A cancel that arrived meanwhile takes everything back: the nonce, the signature, the feature's own writes.
        if (!after) throw new CommitLost()
        return after
      }).catch((error: unknown) => {
        if (error instanceof CommitLost) return undefined
        if (error instanceof SigningRefused) return this.step(task, done, error.instead)
        throw error
      })
    },
    /** A failed attempt: the same step again, later. */
    async retry(
      task: Task,
      afterMs: number,
      { state, outcome }: { state: string; outcome: 'unknown' | null },
    ) {
      const change = changeOf(task, { park: { afterMs, next: task.step } })
      return write(transactions.pool, task, task.step, {
        ...change,
        state,
        outcome,
        attempts: task.attempts + 1,
      })
    },
    async reread(taskId: string): Promise<Task | undefined> {
      const [row] = await send(transactions.pool, 'select * from task where id = $1', [taskId])
      return row && asTask(row as Task)
    },
  }
}

class CommitLost extends Error {}
/** Takes back the number and everything else of the transaction; what it carries is committed instead. */
class SigningRefused extends Error {
  readonly instead: StepResult
  constructor(instead: StepResult) {
    super('the signature was refused')
    this.instead = instead
  }
}
export type Committer = ReturnType<typeof committer>
