import { Fault } from '#kernel/contract/fault.ts'
import type { TaskFullView } from '#kernel/contract/task-response.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { TaskInvoker } from './accept-task-call.ts'
import type { Answer, UserCall } from './operation-call.ts'

const ended = ['completed', 'failed', 'cancelled']

export async function runAnswered(tasks: TaskInvoker, call: UserCall<'task'>): Promise<Answer> {
  const { operation, caller, options } = call
  const { payerOf, finish } = operation.run
  if (!finish) throw new Error(`${operation.name} has no answer`)
  const { key: given } = options
  const payer = payerOf
    ? await payerOf(call.input, caller, given)
    : { caller, ...(given !== undefined && { key: given }) }
  const answer = await tasks.run({
    ...call,
    caller: payer.caller,
    options: {
      wait: true,
      timeoutMs: operation.entry.waitSeconds * 1_000,
      ...(payer.key !== undefined && { key: payer.key }),
    },
  })
  const { task_id: id, status, result, error } = answer.body as TaskFullView
  if (!ended.includes(status)) throw stillRunning()
  const task = { id, status, result: result as JsonObject | null, error: error as JsonObject | null }
  return {
    kind: 'answer',
    body: await finish(task, payer.caller),
    replayed: answer.replayed,
    ...(given !== undefined && { key: given }),
  }
}

const stillRunning = (): Fault =>
  new Fault(
    'unavailable',
    'It takes longer than a call waits: repeat the request under the same idempotency key for its answer',
    { extras: { outcome: 'unknown', retry_after: 2 } },
  )
