import { createKeyedMutex } from '#kernel/async/keyed-mutex.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { createTaskInvoker, type TaskInvoker, type TaskInvokerDeps } from './accept-task-call.ts'
import { type ActRunnerDeps, runAct } from './act-invoker.ts'
import { runAnswered } from './answer-with-result.ts'
import { throwAsFault } from './faults.ts'
import { throwWhereLagging } from './lagging-balances.ts'
import { createLockWaiters } from './lock-waiters.ts'
import type { Invoke, InvokeRequest, OperationCall, OperationOf, Reply, UserCall } from './operation-call.ts'
import type { ShownBalances } from './shown-balances.ts'
import { isStreamTask, runStreamTask } from './stream-task.ts'

type InvokerDeps = TaskInvokerDeps & ActRunnerDeps

export function createInvoker(
  given: TaskInvokerDeps & Pick<ActRunnerDeps, 'acknowledgeAct'> & { shownBalances: ShownBalances },
): Invoke {
  const deps: InvokerDeps = { ...given, actTurns: createKeyedMutex(), lockWaiters: createLockWaiters() }
  const tasks = createTaskInvoker(deps)
  const { transactions, clock, shownBalances } = given
  const lagging = { pool: transactions.pool, clock, shownBalances }
  return (call) =>
    dispatch(deps, tasks, call)
      .catch((error: unknown) => throwWhereLagging(lagging, call.caller?.userId, error))
      .catch(throwAsFault)
}

async function dispatch(deps: InvokerDeps, tasks: TaskInvoker, call: OperationCall): Promise<Reply> {
  const { operation, caller } = call
  const { entry } = operation
  if (isStreamTask(operation) && caller) return runStreamTask(tasks, call as UserCall<'stream'>)
  if (entry.kind === 'stream') return openStream(call as OperationCall<OperationOf<'stream'>>)
  if (entry.kind === 'task' && entry.isAnswered && caller) return runAnswered(tasks, call as UserCall<'task'>)
  if (entry.kind === 'task' && caller) return tasks.run(call as UserCall<'task'>)
  // A public act answers with credentials, which no table may store.
  if (entry.kind === 'act' && caller && entry.access !== 'public')
    return runAct(deps, call as UserCall<'act'>)
  return runPlain(call)
}

function openStream({ operation, input, caller, request }: OperationCall<OperationOf<'stream'>>): Reply {
  if (!caller) throw new Fault('unauthorized', 'A stream needs a credential')
  return { kind: 'stream', items: operation.run(input, caller, request) }
}

/** Runs a read or a public act: one function, without a transaction. */
async function runPlain({ operation, input, caller, request }: OperationCall): Promise<Reply> {
  const run = operation.run as (
    input: unknown,
    caller: Caller | null,
    request: InvokeRequest,
  ) => Promise<unknown>
  return { kind: 'answer', body: await run(input, caller, request), replayed: false }
}
