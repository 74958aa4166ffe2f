import { type Operation, streamTaskOf } from '#kernel/contract/operation.ts'
import type { TaskInvoker } from './accept-task-call.ts'
import type { OperationOf, Reply, UserCall } from './operation-call.ts'

/**
 * Whether the items of a stream are the events of a durable task. The task is accepted once per key, and every request
 * under the key reads the task's events.
 */

export const isStreamTask = (operation: Operation): operation is OperationOf<'stream'> =>
  operation.entry.kind === 'stream' && operation.entry.taskKind !== undefined

/**
 * Returns the operation of the task that fills a stream. `admit` is bound to the caller of one request; without it, the
 * operation throws when it is admitted.
 */
export function taskOperationOf(
  operation: OperationOf<'stream'>,
  admit?: OperationOf<'task'>['run']['admit'],
): OperationOf<'task'> {
  const { entry, ...rest } = operation
  const { output, taskKind } = entry
  if (output === undefined || taskKind === undefined) throw new Error(`no task fills the stream ${rest.name}`)
  const run = streamTaskOf(operation)
  const unknownCaller = async (): Promise<never> => {
    throw new Error(`${rest.name} is admitted with its caller`)
  }
  return {
    ...rest,
    entry: { ...entry, kind: 'task', taskKind, output, waitSeconds: 0 },
    run: { ...run, admit: admit ?? unknownCaller },
  }
}

/** The input `stream` only chooses how the answer is read: a repetition under the key may choose otherwise. */
export async function runStreamTask(tasks: TaskInvoker, call: UserCall<'stream'>): Promise<Reply> {
  const { operation, caller, options, request } = call
  const { stream, ...input } = call.input
  const run = streamTaskOf(operation)
  const accepted = await tasks.accept({
    ...call,
    input,
    operation: taskOperationOf(operation, () => run.admit(input, caller)),
    options: { ...options, wait: false },
  })
  const { id, idempotency_key: key } = accepted.task
  const facts = { replayed: accepted.replayed, ...(key !== null && { key }) }
  if (stream === false) {
    const answer = await run.collect(id, caller, request)
    return { kind: 'answer', body: { ...answer, idempotency_key: key }, ...facts }
  }
  return { kind: 'stream', items: run.subscribe(id, caller, request), ...facts }
}
