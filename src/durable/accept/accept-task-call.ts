import type { ChangePoller } from '#durable/events/change-poller.ts'
import { waitForEnd } from '#durable/events/wait-for-task-end.ts'
import { readTask } from '#durable/task/task-queries.ts'
import { isAdmitted, isEnded, type Task } from '#durable/task/task-row.ts'
import { toTaskBrief, toTaskFullView } from '#durable/task/task-view.ts'
import { MoneyHeld } from '#durable/time/money-hold.ts'
import type { Transactions } from '#durable/transactions.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { requestExecutionId } from '#kernel/task/execution-id.ts'
import { askerOf } from '#kernel/task/fresh-sign-in.ts'
import { bodyHash } from '#kernel/task/idempotency-key.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { StaleBalance } from './acceptance.ts'
import {
  type AcceptedTask,
  admitAndAccept,
  type NewTaskRequest,
  type TaskAdmitterDeps,
} from './admit-task.ts'
import { assertNoDuplicate, recentRequestOf } from './duplicate-requests.ts'
import { acceptanceUnknown, accountBusy, throwAdmissionFault } from './faults.ts'
import { findKey, isKeyTaken, type KeyedRequest } from './idempotency.ts'
import type { Answer, InvokeOptions, UserCall } from './operation-call.ts'

export type TaskInvokerDeps = TaskAdmitterDeps & {
  transactions: Transactions
  changePoller: ChangePoller
  clock: Clock
  random: Random
}
/** `replayed` means that an earlier request under the same key made the task. */
export type AcceptedCall = AcceptedTask & { replayed: boolean }
export type TaskInvoker = {
  run(call: UserCall<'task'>): Promise<Answer>
  accept(call: UserCall<'task'>): Promise<AcceptedCall>
}
type InvokerState = {
  deps: TaskInvokerDeps
  pending: Map<string, Promise<AcceptedTask>>
}

export function createTaskInvoker(deps: TaskInvokerDeps): TaskInvoker {
  const state: InvokerState = { deps, pending: new Map() }
  return {
    run: (call) => runTask(state, call),
    async accept(call) {
      const accepted = await acceptCall(state, call)
      if ('body' in accepted) throw new Error(`${call.operation.name} answers without a task`)
      return accepted
    },
  }
}

async function runTask(state: InvokerState, call: UserCall<'task'>): Promise<Answer> {
  const untilMs = performance.now() + call.options.timeoutMs
  const accepted = await acceptCall(state, call, untilMs)
  if (!('body' in accepted)) return answerTask(state.deps, call, accepted, untilMs)
  return { kind: 'answer', body: accepted.body, replayed: false }
}

async function acceptCall(
  state: InvokerState,
  call: UserCall<'task'>,
  untilMs?: number,
): Promise<AcceptedCall | { body: object }> {
  const { deps, pending } = state
  const { operation, caller, options } = call
  const input = call.input as JsonObject
  const keyed = {
    userId: caller.userId,
    // A request whose reply is lost may still be in flight: only the stored key stops its repeat.
    key: options.key ?? uuidv7(deps.clock.now(), deps.random),
    operation: operation.name,
    hash: bodyHash(operation.name, input),
  }
  const { duplicates } = options
  const request = duplicates && recentRequestOf(keyed.hash, duplicates, deps.clock)
  const pendingKey = `${keyed.userId} ${keyed.key}`
  // Concurrent requests under one key wait for the first of them instead of each preparing in vain.
  while (options.key !== undefined) {
    await pending.get(pendingKey)?.catch(() => undefined)
    const earlier = await findTaskByKey(deps, keyed)
    if (earlier) return { task: earlier, replayed: true }
    // Several requests may have waited for one that was rejected: again only the first of them continues.
    if (!pending.has(pendingKey)) break
  }
  const answered = await operation.run.answer?.(input, caller).catch(throwAdmissionFault)
  if (answered) return { body: answered }
  try {
    if (request) await assertNoDuplicate(deps.transactions.pool, caller.userId, request)
    const asker = askerOf(caller)
    const accepted = await acceptTracked(state, pendingKey, {
      operation,
      input,
      // A request without a caller's key has no execution id: nothing outside this database could find it again.
      asker: options.key === undefined ? asker : { ...asker, executionId: requestExecutionId(keyed) },
      keyed,
      ...(request && { request }),
      // The timeout limits the admission only if the caller waits for the task. It is 0 if the user already has as many
      // waiting requests as one user may have.
      ...(options.wait && options.timeoutMs > 0 && { untilMs }),
    })
    return { ...accepted, replayed: false }
  } catch (error) {
    return findTwin(deps, keyed, error instanceof MoneyHeld ? heldOf(error, options) : error)
  }
}

/** The clocks of two instances differ by less than this time. */
const skewMsMax = 60_000

/**
 * Adds the idempotency key to the fault, unless the key was made after the hold began: the database may have forgotten
 * what an earlier request under the key executed.
 */
const heldOf = (error: MoneyHeld, { key, keyMadeAt }: InvokeOptions): MoneyHeld =>
  keyMadeAt !== undefined && keyMadeAt > later(error.hold.since, skewMsMax)
    ? error
    : new MoneyHeld(error.hold, key)

async function findTaskByKey(
  { transactions: { pool } }: TaskInvokerDeps,
  keyed: KeyedRequest,
): Promise<Task | undefined> {
  const stored = await findKey(pool, keyed)
  return stored?.taskId ? readTask(pool, stored.taskId) : undefined
}

function acceptTracked(
  { deps, pending }: InvokerState,
  pendingKey: string,
  request: NewTaskRequest,
): Promise<AcceptedTask> {
  const work = admitAndAccept(deps, request).finally(() => pending.delete(pendingKey))
  pending.set(pendingKey, work)
  return work
}

/**
 * Looks for a task under the same key after an error: a concurrent request may have been accepted and have spent
 * the balance that is missing now, or only the reply to a commit was lost.
 */
async function findTwin(deps: TaskInvokerDeps, keyed: KeyedRequest, error: unknown): Promise<AcceptedCall> {
  const lost = isDatabaseUnavailable(error)
  const stale = error instanceof StaleBalance
  if (!lost && !stale && !isKeyTaken(error) && !(error instanceof Fault)) throw error
  const twin = await findTaskByKey(deps, keyed).catch((cause: unknown) => {
    throw lost ? acceptanceUnknown(keyed.key, cause) : cause
  })
  if (twin) return { task: twin, replayed: !lost }
  throw stale ? accountBusy() : lost ? acceptanceUnknown(keyed.key, error) : error
}

/** Answers with the task's short form if the caller does not wait, and with its full form after a wait. */
async function answerTask(
  deps: TaskInvokerDeps,
  { operation, options, request }: UserCall<'task'>,
  { task, run, replayed }: AcceptedCall,
  untilMs: number,
): Promise<Answer> {
  const { pool } = deps.transactions
  const read = () => readTask(pool, task.id)
  let shown = replayed ? await read() : task
  if (options.wait && !isEnded(shown)) {
    const timeoutMs = Math.max(0, untilMs - performance.now())
    shown = await waitForEnd(deps, task, read, { timeoutMs, signal: request.signal, run })
  }
  // A task that awaits approval has no operation data yet.
  const { answerFields, everyAnswer } = isAdmitted(shown) ? operation.run : {}
  const view = options.wait ? { ...toTaskFullView(shown), ...answerFields?.(shown.data) } : toTaskBrief(shown)
  const body = { ...view, ...everyAnswer?.(shown) }
  return { kind: 'answer', body, replayed, ...(shown.idempotency_key && { key: shown.idempotency_key }) }
}
