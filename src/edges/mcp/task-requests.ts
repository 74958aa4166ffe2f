import { Fault } from '#kernel/contract/fault.ts'
import type { CallFacts } from './call-tool.ts'
import { type ProtocolTask, type ReadTask, toProtocolTask } from './protocol-task.ts'
import { mainSelection } from './tool-selection.ts'
import type { Toolbox } from './tools.ts'

/**
 * Runs each request of the tasks extension as the operation that it stands for, with the scope, owner check and limits
 * of that operation. Each function throws a fault if the operation refuses.
 */
export type TaskRequests = {
  get(taskId: string, facts: CallFacts): Promise<ProtocolTask>
  /** Checks that the task exists and ignores the client's input, because no task of the gateway asks for input. */
  update(taskId: string, facts: CallFacts): Promise<void>
  /**
   * Requests the cancellation of a task. If the task has ended, or its signed bytes were sent, it stays unchanged, and
   * the request succeeds all the same.
   */
  cancel(taskId: string, facts: CallFacts): Promise<void>
}

export function createTaskRequests({ find, taskTtlMs }: Toolbox): TaskRequests | undefined {
  const names = ['tasks_get', 'tasks_cancel'] as const
  if (names.some((name) => !find(name, mainSelection))) return undefined
  const call = async (name: (typeof names)[number], taskId: string, facts: CallFacts): Promise<unknown> => {
    // The address of a client serves the requests of the extension as far as it serves the tools.
    const operation = find(name, facts.selection)?.invocable
    if (!operation) throw new Fault('validation', `The address of this client does not serve \`${name}\``)
    const admitted = await operation.admit(facts)
    if (admitted.refusal) throw admitted.refusal
    const { input, ...options } = operation.readFlatInput({ task_id: taskId })
    const outcome = await operation.call(admitted, input, options, facts)
    return outcome.kind === 'answer' ? outcome.body : undefined
  }
  const get: TaskRequests['get'] = async (taskId, facts) =>
    toProtocolTask((await call('tasks_get', taskId, facts)) as ReadTask, taskTtlMs)
  return {
    get,
    async update(taskId, facts) {
      await get(taskId, facts)
    },
    async cancel(taskId, facts) {
      await call('tasks_cancel', taskId, facts).catch((error: unknown) => {
        if (!(error instanceof Fault && error.code === 'not_cancellable')) throw error
      })
    },
  }
}
