import type { ActScope, Caller } from '#kernel/contract/caller.ts'
import type { TaskBrief } from '#kernel/contract/task-response.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

/** Acts that allow more than before: a person confirms each of them on a page of the gateway. */

export type ApprovalDetail = { name: string; value: string }
export type ActRequest = {
  operation: string
  /** The complete input of the act, which is exactly what the person confirms. */
  input: JsonObject
  /** The act in one sentence in the imperative, for the person who decides. */
  text: string
  details: ApprovalDetail[]
}
export type RequestedAct = TaskBrief & { approval: NonNullable<TaskBrief['approval']> }
export type ActRequests = {
  /** Stores the act as a waiting task, unless the same act of the same caller waits already. */
  requestAct(scope: ActScope, act: ActRequest, caller: Caller): Promise<RequestedAct>
}
