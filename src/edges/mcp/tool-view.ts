import type { InvocableOperation } from '#invoke/invocation.ts'
import type { ObjectSchema } from '#invoke/tool-schema.ts'

/** A tool as a list shows it. */
export type ToolView = {
  name: string
  title: string
  description: string
  inputSchema: ObjectSchema
  outputSchema?: ObjectSchema
  annotations: {
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: boolean
  }
}
export type OperationTool = {
  view: ToolView
  /** The short form of a main tool; absent for all other tools. */
  main: ToolView | undefined
  invocable: InvocableOperation
  /** True if a repeat of the call could move money twice. */
  isGuarded: boolean
  /** True if the call makes a task, and reading that task returns every field of the answer. */
  becomesTask: boolean
}
