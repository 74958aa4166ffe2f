import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Caller, RequestFacts } from '#kernel/caller.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Operation, StreamItem } from '#kernel/operation.ts'
import type { Admission, TaskKind, Tx } from '#kernel/task.ts'
import { builder, fetchAll, query } from '#store/query.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import type { TaskAcceptance } from './accept-task.ts'
import type { ChangePoller } from './change-poller.ts'
import { bodyHash, findKey, isKeyTaken } from './idempotency.ts'
import { kindKey } from './kinds.ts'
import { waitForEnd } from './latch.ts'
import { StaleSnapshot } from './ledger.ts'
import type { LocalEvents } from './local-events.ts'
import { type Notifier, readyTopic } from './notifier.ts'
import {
  acceptanceUnknown,
  accountBusy,
  isInsufficientBalance,
  throwAdmissionFault,
  throwAsFault,
} from './operation-faults.ts'
import type { Runner } from './runner.ts'
import { asTask, isEnded, type Task } from './task-row.ts'
import { toTaskBrief, toTaskFullView } from './task-view.ts'
import type { Transactions } from './transactions.ts'

export type InvokeOptions = { wait: boolean; timeoutMs: number; key?: string }
export type InvokeRequest = RequestFacts & { lastEventId?: string }
export type Reply =
  | { kind: 'answer'; body: unknown; replayed: boolean; key?: string }
  | { kind: 'stream'; items: AsyncIterable<StreamItem> }
/** The one path of every door. */
export type Invoke = (
  operation: Operation,
  input: Record<string, unknown>,
  caller: Caller | null,
  options: InvokeOptions,
  request: InvokeRequest,
) => Promise<Reply>

type InvokerDeps = {
  transactions: Transactions
  acceptance: TaskAcceptance
  runner: Runner
  kinds: ReadonlyMap<string, TaskKind>
  notifier: Notifier
  localEvents: LocalEvents
  changePoller: ChangePoller
  clock: Clock
  random: Random
  baseUrl: () => string
}
type TaskOperation = Extract<Operation, { entry: { kind: 'task' } }>
type ActOperation = Extract<Operation, { entry: { kind: 'act' } }>
type Keyed = { userId: string; key: string; operation: string; hash: string }

/** An account may be settled between its reading and the commit; then it is read again, for so long. */
const staleMsMax = 5_000
const admissionAttemptsMax = 3

export function createInvoker({
  transactions,
  acceptance,
  runner,
  kinds,
  notifier,
  localEvents,
  changePoller,
  clock,
  random,
  baseUrl,
}: InvokerDeps): Invoke {
  const { pool } = transactions

  const readTask = async (taskId: string): Promise<Task> => {
    const [row] = await fetchAll(pool, builder.selectFrom('task').selectAll().where('id', '=', taskId))
    if (!row) throw new Error(`task ${taskId} is gone`)
    return asTask(row)
  }

  const answer = async (
    task: Task,
    { wait, timeoutMs }: InvokeOptions,
    request: InvokeRequest,
    replayed: boolean,
  ): Promise<Reply> => {
    let shown = replayed ? await readTask(task.id) : task
    if (wait && !isEnded(shown)) {
      const readIfEnded = async () => {
        shown = await readTask(task.id)
        return isEnded(shown) ? shown : undefined
      }
      await waitForEnd({ notifier, changePoller }, task.id, readIfEnded, {
        timeoutMs,
        signal: request.signal,
      })
    }
    const body = wait ? toTaskFullView(shown, baseUrl()) : toTaskBrief(shown, baseUrl())
    return { kind: 'answer', body, replayed, ...(shown.idempotency_key && { key: shown.idempotency_key }) }
  }

  const admitAndAccept = async (
    operation: TaskOperation,
    input: JsonObject,
    who: Caller,
    keyed: Keyed,
  ): Promise<Task> => {
    const { entry, name, run } = operation
    const kind = kinds.get(kindKey(entry.kind === 'task' ? (entry.taskKind ?? name) : name, run.version ?? 1))
    if (!kind) throw new Error(`no kind for ${name}`)
    const accept = async (admission: Admission): Promise<Task> => {
      using slot = runner.reserve(kind.priority, who.userId)
      const wanted = { userId: who.userId, kind, input, admission, key: keyed, leased: slot !== undefined }
      const { task, committedEvents, signed } = await acceptance.accept(wanted)
      if (slot) {
        slot.take(task, signed)
        await yieldToFirstStep()
      } else notifier.notify([readyTopic])
      localEvents.publish(task, committedEvents)
      return task
    }
    const startedMs = performance.now()
    /** A commit that has waited for a settlement finds its reading stale; the reading alone is short enough to fit between two. */
    const acceptRereadingBalances = async (admission: Admission): Promise<Task> => {
      for (let current = admission; ; ) {
        try {
          return await accept(current)
        } catch (error) {
          const isRetryable = error instanceof StaleSnapshot && performance.now() - startedMs < staleMsMax
          if (!isRetryable || !current.rereadSnapshots) throw error
          current = { ...current, snapshots: await current.rereadSnapshots().catch(throwAdmissionFault) }
        }
      }
    }
    for (let attempt = 1; ; attempt++) {
      const admission = await run.admit(input, who).catch(throwAdmissionFault)
      try {
        return await acceptRereadingBalances(admission)
      } catch (error) {
        // Others were accepted in between: what is left is for a new admission to say.
        if (!isInsufficientBalance(error) || attempt >= admissionAttemptsMax) throw error
      }
    }
  }

  /** Requests under one key that arrive together wait for the first of them instead of each preparing in vain. */
  const pending = new Map<string, Promise<Task>>()
  const trackPending = (name: string, start: () => Promise<Task>): Promise<Task> => {
    const work = start().finally(() => pending.delete(name))
    pending.set(name, work)
    return work
  }

  const runTask = async (
    operation: TaskOperation,
    input: JsonObject,
    who: Caller,
    options: InvokeOptions,
    request: InvokeRequest,
  ) => {
    const key = options.key ?? uuidv7(clock.now(), random)
    const keyed = {
      userId: who.userId,
      key,
      operation: operation.name,
      hash: bodyHash(operation.name, input),
    }
    const findByKey = async (): Promise<Task | undefined> => {
      const stored = await findKey(pool, keyed)
      return stored?.taskId ? readTask(stored.taskId) : undefined
    }
    const pendingKey = `${who.userId} ${key}`
    while (options.key !== undefined) {
      await pending.get(pendingKey)?.catch(() => undefined)
      const earlier = await findByKey()
      if (earlier) return answer(earlier, options, request, true)
      // Several may have waited for one that was refused: again only the first of them goes on.
      if (!pending.has(pendingKey)) break
    }
    try {
      const task = await trackPending(pendingKey, () => admitAndAccept(operation, input, who, keyed))
      return await answer(task, options, request, false)
    } catch (error) {
      const lost = isDatabaseUnavailable(error)
      const stale = error instanceof StaleSnapshot
      if (!lost && !stale && !isKeyTaken(error) && !(error instanceof Fault)) throw error
      // A twin under the same key may have been accepted meanwhile, and may have spent what this one was refused for;
      // and the reply to a commit may have been lost while the commit was not.
      const twin = await findByKey().catch((cause: unknown) => {
        throw lost ? acceptanceUnknown(key, cause) : cause
      })
      if (twin) return answer(twin, options, request, !lost)
      throw stale ? accountBusy() : lost ? acceptanceUnknown(key, error) : error
    }
  }

  /** A transaction that is repeated after a conflict starts with no callbacks of the one before. */
  const runInTransaction = async <T>(
    run: (tx: Tx, afterCommit: (notify: () => void) => void) => Promise<T>,
  ) => {
    let callbacks: (() => void)[] = []
    const output = await transactions.run((tx) => {
      callbacks = []
      return run(tx, (callback) => callbacks.push(callback))
    })
    for (const callback of callbacks) callback()
    return output
  }

  const runAct = async (
    operation: ActOperation,
    input: JsonObject,
    who: Caller,
    options: InvokeOptions,
    request: InvokeRequest,
  ): Promise<Reply> => {
    const { key } = options
    if (key === undefined) {
      const body = await runInTransaction((tx, afterCommit) =>
        operation.run(input, who, { ...request, tx, afterCommit }),
      )
      return { kind: 'answer', body, replayed: false }
    }
    const keyed = {
      userId: who.userId,
      key,
      operation: operation.name,
      hash: bodyHash(operation.name, input),
    }
    const isDerived = operation.entry.replies === 'derived'
    const replay = async (): Promise<Reply | undefined> => {
      const stored = await findKey(pool, keyed)
      if (!stored) return undefined
      const body = isDerived
        ? await operation.run(input, who, { ...request, isReplay: true })
        : stored.response
      return { kind: 'answer', body, replayed: true, key }
    }
    try {
      const earlier = await replay()
      if (earlier) return earlier
      const body = await runInTransaction(async (tx, afterCommit) => {
        await query(
          tx,
          'insert into idempotency (user_id, key, operation, body_hash, at) values ($1, $2, $3, $4, $5)',
          [who.userId, key, keyed.operation, keyed.hash, clock.now()],
        )
        const output = await operation.run(input, who, { ...request, tx, afterCommit })
        if (isDerived) return output
        await query(tx, 'update idempotency set response = $3 where user_id = $1 and key = $2', [
          who.userId,
          key,
          JSON.stringify(output),
        ])
        return output
      })
      return { kind: 'answer', body, replayed: false, key }
    } catch (error) {
      const twin = isKeyTaken(error) ? await replay() : undefined
      if (!twin) throw error
      return twin
    }
  }

  const dispatch: Invoke = async (operation, input, who, options, request) => {
    const { entry } = operation
    if (entry.kind === 'stream') {
      if (!who) throw new Fault('unauthorized', 'A stream needs a credential')
      return {
        kind: 'stream',
        items: (operation as Extract<Operation, { entry: { kind: 'stream' } }>).run(input, who, request),
      }
    }
    if (entry.kind === 'task' && who)
      return runTask(operation as TaskOperation, input as JsonObject, who, options, request)
    // A public act answers with credentials, which no table may keep.
    if (entry.kind === 'act' && who && entry.access !== 'public')
      return runAct(operation as ActOperation, input as JsonObject, who, options, request)
    const run = operation.run as (
      input: unknown,
      who: Caller | null,
      request: InvokeRequest,
    ) => Promise<unknown>
    return { kind: 'answer', body: await run(input, who, request), replayed: false }
  }
  return (...args) => dispatch(...args).catch(throwAsFault)
}

/** What a task does first, it does before anybody is told of it: a request leaves in the turn after the one it is made in. */
async function yieldToFirstStep(): Promise<void> {
  await nextTurn()
  await nextTurn()
}
