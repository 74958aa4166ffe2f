import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Built, Effect, Intent, Lane, NewCarrier, Replacement, StepResult, Tx } from '#kernel/task.ts'
import { houseOwner } from '#kernel/task.ts'
import { allEnded, jsonText, send } from '#store/query.ts'
import { type Change, changeOf, eventsOf } from './change.ts'
import { ledgerFailure, movesToJson } from './ledger.ts'
import type { Told } from './news.ts'
import { asTask, type Task } from './row.ts'
import { repeated, type Transactions } from './transactions.ts'
import { createdEvent } from './view.ts'

type Needs = {
  transactions: Transactions
  clock: Clock
  random: Random
  instanceId: string
  leaseMs: number
  baseUrl: () => string
}
type Intending = Extract<StepResult, { intend: unknown }>
/** A step that may be committed together with the promise: it signs, and that is all that it does. */
export type Opens = Intending & { intend: { opening: NonNullable<Intent['opening']> } }
export const isOpening = (result: StepResult): result is Opens => {
  if (!('intend' in result) || !result.intend.opening || result.also) return false
  return (result.moves ?? []).length === 0 && (result.effects ?? []).length === 0
}
/** The task as committed, what its owner is told of it, and the effect that its step has signed. */
export type Committed = { task: Task; told?: Told; signed?: Effect }

/** Writes the result of a step, fenced by owner and epoch. */
export function committer({ transactions, clock, random, instanceId, leaseMs, baseUrl }: Needs) {
  const write = async (
    on: pg.Pool | Tx,
    task: Task,
    change: Change,
    extra: object = {},
    promise?: object,
  ): Promise<Committed | undefined> => {
    const at = clock.now()
    const ended = change.status !== 'running'
    const after: Task = {
      ...task,
      status: change.status,
      state: change.state,
      outcome: change.outcome,
      step: change.step,
      attempts: change.attempts,
      data: { ...task.data, ...change.data },
      result: change.result ?? task.result,
      error: change.error ?? task.error,
      run_at: change.parkMs === undefined ? task.run_at : later(at, change.parkMs),
      owner: ended || change.parkMs !== undefined ? null : task.owner,
      commits: task.commits + 1,
      updated_at: at,
      completed_at: ended ? at : null,
    }
    const told = eventsOf(task, after, baseUrl(), change.events)
    const all = promise ? [createdEvent(task, baseUrl()), ...told] : told
    const events = task.user_id === houseOwner ? [] : all
    const body = {
      id: task.id,
      owner: instanceId,
      epoch: task.epoch,
      commits: task.commits,
      at,
      done: task.step,
      attempt: task.attempts + 1,
      status: after.status,
      state: after.state,
      outcome: after.outcome,
      step: after.step,
      attempts: after.attempts,
      data: change.data,
      result: change.result,
      error: change.error,
      parkMs: change.parkMs,
      runAt: change.parkMs === undefined ? undefined : after.run_at,
      leaseSeconds: after.owner === null ? undefined : leaseMs / 1000,
      moves: movesToJson(change.moves),
      effects: change.effects,
      events,
      ...extra,
    }
    const [text, values] = promise
      ? ['select task_open($1::jsonb, $2::jsonb) as last', [promise, body]]
      : ['select task_write($1::jsonb) as last', [body]]
    const sent = values.map(jsonText)
    const [row] = await send<{ last: bigint | null }>(on as pg.Pool, text, sent).catch((error: unknown) => {
      throw ledgerFailure(error, change.moves)
    })
    const last = row?.last ?? null
    return last === null ? undefined : { task: after, told: { last: BigInt(last), events } }
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

  const takeNonce = async (tx: Tx, { lane: { kind, chain, signer }, floor = 0n }: Intending['intend']) => {
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
    effectId,
    raw: carrier.raw,
    extId: carrier.extId,
    nonce: String(carrier.nonce),
    laneKind: kind,
    chain,
    signer,
  })

  const effectOf = ({ effect: built, carrier }: Built, lane: Lane, step: string): Effect => {
    const at = clock.now()
    const { policyReceipt: _receipt, validUntil = null, ...facts } = built
    const common = { status: 'prepared' as const, at }
    return {
      ...facts,
      ...common,
      id: uuidv7(at, random),
      step,
      validUntil,
      carriers: [{ ...carrier, ...common, n: 0, lane }],
    }
  }

  const signedJson = ({ effect, carrier }: Built, { id }: Effect, lane: Lane) => ({
    effect: { ...effect, id },
    carrier: carrierJson(carrier, id, lane),
  })

  const stepIn = async (tx: Tx, task: Task, result: StepResult): Promise<Committed | undefined> => {
    const change = changeOf(task, result)
    if (!('intend' in result)) {
      const extra = 'replace' in result ? { carrier: await replacement(tx, result.replace) } : {}
      return write(tx, task, change, extra)
    }
    const { lane, build, refused } = result.intend
    const built = await build(await takeNonce(tx, result.intend), tx).catch((error: unknown) => {
      throw refused && error instanceof Fault && !error.retryable ? new SigningRefused(refused(error)) : error
    })
    const signed = effectOf(built, lane, task.step)
    const after = await write(tx, task, change, signedJson(built, signed, lane))
    return after && { ...after, signed }
  }

  const replacement = async (tx: Tx, { effectId, lane, build }: Replacement) =>
    carrierJson(await build(tx), effectId, lane)

  return {
    /** Undefined where this instance no longer owns the task, or where a cancel came first. */
    async step(task: Task, result: StepResult): Promise<Committed | undefined> {
      const laned = 'intend' in result || 'replace' in result
      if (!laned && !result.also) {
        return repeated(() => write(transactions.pool, task, changeOf(task, result)))
      }
      return fenced(task, async (tx) => {
        await result.also?.(tx)
        const committed = await stepIn(tx, task, result)
        // A cancel that arrived meanwhile takes everything back: the nonce, the signature, the feature's own writes.
        if (!committed) throw new CommitLost()
        return committed
      }).catch((error: unknown) => {
        if (error instanceof CommitLost) return undefined
        if (error instanceof SigningRefused) return this.step(task, error.instead)
        throw error
      })
    },
    /**
     * The promise and its first step at once. The number comes first, so that who waits for it holds nothing that
     * others wait for; all that is written goes out together.
     */
    open: (task: Task, result: Opens, promise: object): Promise<Committed> =>
      transactions.runAfter(
        (tx) => allEnded([takeNonce(tx, result.intend), result.intend.opening(tx)]),
        async (tx, [nonce, opened], commit) => {
          const { lane } = result.intend
          const built = await opened(nonce)
          const signed = effectOf(built, lane, task.step)
          const extra = signedJson(built, signed, lane)
          const change = changeOf(task, result)
          const [, after] = await allEnded([built.also(), write(tx, task, change, extra, promise), commit()])
          if (!after) throw new Error(`task ${task.id} was not there a moment after it was written`)
          return { ...after, signed }
        },
      ),
    /** A failed attempt: the same step again, later. */
    async retry(
      task: Task,
      afterMs: number,
      { state, outcome }: { state: string; outcome: 'unknown' | null },
    ) {
      const change = changeOf(task, { park: { afterMs, next: task.step } })
      return write(transactions.pool, task, {
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
