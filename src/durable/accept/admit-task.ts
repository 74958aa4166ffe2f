import { setImmediate as nextTurn } from 'node:timers/promises'
import type { LocalEvents } from '#durable/events/local-events.ts'
import { type Notifier, readyTopic } from '#durable/events/notifier.ts'
import type { Runner } from '#durable/run/runner.ts'
import { kindKey, movesMoney, taskPriority } from '#durable/task/task-kinds.ts'
import type { Task } from '#durable/task/task-row.ts'
import type { MoneyHolds } from '#durable/time/money-hold.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { type Asker, isOwnClient } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { ApprovalRequired } from '#kernel/task/approval.ts'
import type { Admission, TaskKind } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { StaleBalance } from './acceptance.ts'
import type { RecentRequest } from './duplicate-requests.ts'
import { isInsufficientBalance, throwAdmissionFault } from './faults.ts'
import type { KeyedRequest } from './idempotency.ts'
import type { OperationOf } from './operation-call.ts'
import type { TaskIntake } from './task-intake.ts'

export type TaskAdmitterDeps = {
  intake: TaskIntake
  runner: Runner
  kinds: ReadonlyMap<string, TaskKind>
  notifier: Notifier
  localEvents: LocalEvents
  holds: Pick<MoneyHolds, 'assertFree'>
  requestApproval(request: KnownRequest, required: ApprovalRequired): Promise<AcceptedTask>
}
export type NewTaskRequest = {
  operation: OperationOf<'task'>
  input: JsonObject
  asker: Asker
  keyed: KeyedRequest
  request?: RecentRequest
  /** The time of `performance.now` at which an unfinished admission is given up, so that nothing is accepted. */
  untilMs?: number | undefined
}
export type AcceptedTask = { task: Task; run?: Promise<Task | undefined> }
export type KnownRequest = NewTaskRequest & { kind: TaskKind }

/** A balance that was settled between its reading and the commit is read again for at most this long. */
const staleMsMax = 5_000
const admissionAttemptsMax = 3

/** Admits and accepts a request. If a person has to approve it, it becomes a waiting task. */
export async function admitAndAccept(deps: TaskAdmitterDeps, given: NewTaskRequest): Promise<AcceptedTask> {
  const request = { ...given, kind: kindOf(deps.kinds, given.operation) }
  // This check only saves reads while money is on hold; the acceptance refuses money that is put on hold later.
  if (movesMoney(request.kind)) deps.holds.assertFree()
  return admitUntilAccepted(given, (admission) => accept(deps, request, admission)).catch(
    (error: unknown) => {
      // A chat cannot ask for an approval: it recommends the action, and its user asks for the approval. Nobody is there
      // to approve what a run of a schedule asks for, so a person approves it with the activation of the schedule.
      const mayAsk = given.asker.principal !== 'chat' && given.asker.run === undefined
      if (error instanceof ApprovalRequired && mayAsk) return deps.requestApproval(request, error)
      throw error
    },
  )
}

export async function admitUntilAccepted<Accepted>(
  { operation, input, asker, untilMs }: Pick<NewTaskRequest, 'operation' | 'input' | 'asker' | 'untilMs'>,
  acceptOnce: (admission: Admission) => Promise<Accepted>,
): Promise<Accepted> {
  const startedMs = performance.now()
  for (let attempt = 1; ; attempt++) {
    const admitting = operation.run.admit(input, asker).catch(throwAdmissionFault)
    const admission = await (untilMs === undefined ? admitting : endsBy(admitting, untilMs))
    assertCounted(admission, { operation, asker })
    try {
      return await acceptRereadingBalances(acceptOnce, admission, startedMs)
    } catch (error) {
      // Other tasks took part of the balance meanwhile, so a new admission decides by the rest of it.
      if (!isInsufficientBalance(error) || attempt >= admissionAttemptsMax) throw error
    }
  }
}

async function endsBy(admitting: Promise<Admission>, untilMs: number): Promise<Admission> {
  const admission = await withTimeLimit(admitting, Math.max(0, untilMs - performance.now()))
  if (admission) return admission
  throw new Fault('unavailable', 'The request was not accepted within its timeout, and nothing was done', {
    extras: { retry_after: 1 },
  })
}

/** Throws if a chat starts an operation whose spend does not count against the limit of chats. */
function assertCounted(
  { spend }: Admission,
  { operation, asker }: Pick<NewTaskRequest, 'operation' | 'asker'>,
): void {
  if (asker.principal !== 'chat' || spend?.action.principal === 'chat') return
  throw new Fault('policy_denied', `A chat does not start ${operation.name} by itself`, {
    extras: { rule: 'chat_per_day_usd', limit: null, remaining: null },
  })
}

export function kindOf(
  kinds: ReadonlyMap<string, TaskKind>,
  { entry, name, run }: OperationOf<'task'>,
): TaskKind {
  const kind = kinds.get(kindKey(entry.taskKind ?? name, run.version ?? 1))
  if (!kind) throw new Error(`no kind for ${name}`)
  return kind
}

/**
 * Reads a balance again after a settlement made the earlier reading stale. Only the balance is read: during a whole
 * admission the next settlement could make it stale again.
 */
async function acceptRereadingBalances<Accepted>(
  acceptOnce: (admission: Admission) => Promise<Accepted>,
  admission: Admission,
  startedMs: number,
): Promise<Accepted> {
  for (let current = admission; ; ) {
    try {
      return await acceptOnce(current)
    } catch (error) {
      const isRetryable = error instanceof StaleBalance && performance.now() - startedMs < staleMsMax
      const reread = isRetryable && rereadOf(current)
      if (!reread) throw error
      current = await reread().catch(throwAdmissionFault)
    }
  }
}

function rereadOf(admission: Admission): (() => Promise<Admission>) | undefined {
  const { spend } = admission
  const seen = spend?.seen
  if (!seen) return undefined
  return async () => ({ ...admission, spend: { ...spend, seen: { ...seen, ...(await seen.reread()) } } })
}

async function accept(
  { intake, runner, notifier, localEvents }: TaskAdmitterDeps,
  { input, asker: { userId, executionId, run, clientId }, keyed, kind, request }: KnownRequest,
  admission: Admission,
): Promise<AcceptedTask> {
  using slot = runner.reserve(taskPriority(kind, { parent_id: run?.run ?? null, input }), userId)
  const wanted = {
    userId,
    kind,
    input,
    admission,
    key: keyed,
    leased: slot !== undefined,
    ...(executionId !== undefined && { executionId }),
    ...(run && { parentId: run.run }),
    ...(clientId !== undefined && !isOwnClient(clientId) && { clientId }),
    ...(request && { request }),
  }
  const { task, committedEvents, signed } = await intake.accept(wanted)
  const work = slot?.take(task, signed)
  if (slot) await yieldToFirstStep()
  else notifier.notify([readyTopic])
  localEvents.publish(task, committedEvents)
  return { task, ...(work && { run: work }) }
}

/** Waits two event-loop turns, so that the first step's requests leave before listeners are notified. */
async function yieldToFirstStep(): Promise<void> {
  await nextTurn()
  await nextTurn()
}
