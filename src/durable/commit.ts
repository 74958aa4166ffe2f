import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type {
  Effect,
  Intent,
  NewTxAttempt,
  NonceSequence,
  Replacement,
  SignedEffect,
  StepResult,
  Tx,
} from '#kernel/task.ts'
import { systemOwner } from '#kernel/task.ts'
import { jsonText, query, settleAll } from '#store/query.ts'
import { movesToJson, toLedgerError } from './ledger.ts'
import type { CommittedEvents } from './local-events.ts'
import { type StepTransition, transition, transitionEvents } from './step-transition.ts'
import { asTask, type Task } from './task-row.ts'
import { createdEvent } from './task-view.ts'
import { retryOnConflict, type Transactions } from './transactions.ts'

type CommitterDeps = {
  transactions: Transactions
  clock: Clock
  random: Random
  instanceId: string
  leaseMs: number
  baseUrl: () => string
}
type SigningResult = Extract<StepResult, { intend: unknown }>
/** A step that may be committed together with the promise: it signs, and that is all that it does. */
export type SignOnAccept = SigningResult & { intend: { signOnAccept: NonNullable<Intent['signOnAccept']> } }
export const canSignOnAccept = (result: StepResult): result is SignOnAccept => {
  if (!('intend' in result) || !result.intend.signOnAccept || result.writes) return false
  return (result.moves ?? []).length === 0 && (result.effects ?? []).length === 0
}
/** The task as committed, what its owner is told of it, and the effect that its step has signed. */
export type Committed = { task: Task; committedEvents?: CommittedEvents; signed?: Effect }

/** Writes the result of a step, fenced by owner and epoch. */
export function createCommitter({
  transactions,
  clock,
  random,
  instanceId,
  leaseMs,
  baseUrl,
}: CommitterDeps) {
  const write = async (
    db: pg.Pool | Tx,
    task: Task,
    change: StepTransition,
    extra: object = {},
    acceptance?: object,
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
    const taskEvents = transitionEvents(task, after, baseUrl(), change.events)
    const all = acceptance ? [createdEvent(task, baseUrl()), ...taskEvents] : taskEvents
    const events = task.user_id === systemOwner ? [] : all
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
    const [text, values] = acceptance
      ? ['select task_accept_signed($1::jsonb, $2::jsonb) as last', [acceptance, body]]
      : ['select task_write($1::jsonb) as last', [body]]
    const sent = values.map(jsonText)
    const [row] = await query<{ last: bigint | null }>(db as pg.Pool, text, sent).catch((error: unknown) => {
      throw toLedgerError(error, change.moves)
    })
    const last = row?.last ?? null
    return last === null ? undefined : { task: after, committedEvents: { last: BigInt(last), events } }
  }

  /** The row lock of the task comes first, so that locks are always taken in one order. */
  const fenced = async <T>(task: Task, run: (tx: Tx) => Promise<T>): Promise<T | undefined> =>
    transactions.run(async (tx) => {
      const held = await query(
        tx,
        `select id from task where id = $1 and epoch = $2 and owner = $3 and status in ('pending', 'running') for update`,
        [task.id, task.epoch, instanceId],
      )
      return held.length === 1 ? run(tx) : undefined
    })

  const takeNonce = async (
    tx: Tx,
    { nonceSequence: { kind, chain, signer }, minNonce = 0n }: SigningResult['intend'],
  ) => {
    const [row] = await query<{ nonce: string | bigint }>(
      tx,
      `update nonce_sequence set next = greatest(next, $4::bigint) + 1
       where kind = $1 and chain = $2 and signer = $3 returning next - 1 as nonce`,
      [kind, chain, signer, minNonce],
    )
    if (!row) throw new Error(`nonce sequence ${kind} ${chain} ${signer} was not opened`)
    return BigInt(row.nonce)
  }

  const txAttemptJson = (
    attempt: NewTxAttempt,
    effectId: string,
    { kind, chain, signer }: NonceSequence,
  ) => ({
    effectId,
    raw: attempt.raw,
    externalId: attempt.externalId,
    nonce: String(attempt.nonce),
    nonceKind: kind,
    chain,
    signer,
  })

  const buildEffect = (
    { effect: built, txAttempt }: SignedEffect,
    nonceSequence: NonceSequence,
    step: string,
  ): Effect => {
    const at = clock.now()
    const { policyReceipt: _receipt, validUntil = null, ...facts } = built
    const common = { status: 'prepared' as const, at }
    return {
      ...facts,
      ...common,
      id: uuidv7(at, random),
      step,
      validUntil,
      txAttempts: [{ ...txAttempt, ...common, n: 0, nonceSequence }],
    }
  }

  const signedJson = ({ effect, txAttempt }: SignedEffect, { id }: Effect, nonceSequence: NonceSequence) => ({
    effect: { ...effect, id },
    txAttempt: txAttemptJson(txAttempt, id, nonceSequence),
  })

  const commitInTransaction = async (
    tx: Tx,
    task: Task,
    result: StepResult,
  ): Promise<Committed | undefined> => {
    const change = transition(task, result)
    if (!('intend' in result)) {
      const extra = 'replace' in result ? { txAttempt: await replacementJson(tx, result.replace) } : {}
      return write(tx, task, change, extra)
    }
    const { nonceSequence, build, onRefused } = result.intend
    const built = await build(await takeNonce(tx, result.intend), tx).catch((error: unknown) => {
      throw onRefused && error instanceof Fault && !error.retryable
        ? new SigningRefused(onRefused(error))
        : error
    })
    const signed = buildEffect(built, nonceSequence, task.step)
    const after = await write(tx, task, change, signedJson(built, signed, nonceSequence))
    return after && { ...after, signed }
  }

  const replacementJson = async (tx: Tx, { effectId, nonceSequence, build }: Replacement) =>
    txAttemptJson(await build(tx), effectId, nonceSequence)

  return {
    /** Undefined where this instance no longer owns the task, or where a cancel came first. */
    async step(task: Task, result: StepResult): Promise<Committed | undefined> {
      const takesNonce = 'intend' in result || 'replace' in result
      if (!takesNonce && !result.writes) {
        return retryOnConflict(() => write(transactions.pool, task, transition(task, result)))
      }
      return fenced(task, async (tx) => {
        await result.writes?.(tx)
        const committed = await commitInTransaction(tx, task, result)
        // A cancel that arrived meanwhile takes everything back: the nonce, the signature, the feature's own writes.
        if (!committed) throw new CommitLost()
        return committed
      }).catch((error: unknown) => {
        if (error instanceof CommitLost) return undefined
        if (error instanceof SigningRefused) return this.step(task, error.fallback)
        throw error
      })
    },
    /**
     * The promise and its first step at once. The number comes first, so that who waits for it holds nothing that
     * others wait for; all that is written goes out together.
     */
    acceptAndSign: (task: Task, result: SignOnAccept, acceptance: object): Promise<Committed> =>
      transactions.pipelined(
        (tx) => settleAll([takeNonce(tx, result.intend), result.intend.signOnAccept(tx)]),
        async (tx, [nonce, sign], commit) => {
          const { nonceSequence } = result.intend
          const built = await sign(nonce)
          const signed = buildEffect(built, nonceSequence, task.step)
          const extra = signedJson(built, signed, nonceSequence)
          const change = transition(task, result)
          const [, after] = await settleAll([
            built.writes(),
            write(tx, task, change, extra, acceptance),
            commit(),
          ])
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
      const change = transition(task, { park: { afterMs, next: task.step } })
      return write(transactions.pool, task, {
        ...change,
        state,
        outcome,
        attempts: task.attempts + 1,
      })
    },
    async reread(taskId: string): Promise<Task | undefined> {
      const [row] = await query(transactions.pool, 'select * from task where id = $1', [taskId])
      return row && asTask(row as Task)
    },
  }
}

class CommitLost extends Error {}
/** Takes back the number and everything else of the transaction; what it carries is committed instead. */
class SigningRefused extends Error {
  readonly fallback: StepResult
  constructor(fallback: StepResult) {
    super('the signature was refused')
    this.fallback = fallback
  }
}
export type Committer = ReturnType<typeof createCommitter>
