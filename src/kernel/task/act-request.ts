import type { ActScope, Caller } from '#kernel/contract/caller.ts'
import type { TaskBrief } from '#kernel/contract/task-response.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

/** Acts that allow more than before: a person confirms each on a page of the gateway. */

/** One line of what a person confirms: what it is, and its value. */
export type ApprovalDetail = { name: string; value: string }
export type ActRequest = {
  operation: string
  /** What runs, whole: the person confirms exactly this. */
  input: JsonObject
  /** One sentence in the imperative. */
  text: string
  details: ApprovalDetail[]
}
/** The task that waits. */
export type RequestedAct = TaskBrief & { approval: NonNullable<TaskBrief['approval']> }
export type ActRequests = {
  /** Stores the act as a task that waits. The same act of the same caller that waits already is not stored again. */
  requestAct(scope: ActScope, act: ActRequest, caller: Caller): Promise<RequestedAct>
}
