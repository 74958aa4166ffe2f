import type { ToolCall, ToolResult } from '#kernel/wire/chat-answerer.ts'
import { isRecord, type JsonObject } from '#kernel/wire/json.ts'

/** The output of one operation of a plan; `Outputs` holds them by the id of their step. */
export type StepOutput = {
  operation: string
  output: unknown
  fetchedAtMs: number
  /** The input of the call. */
  input?: JsonObject
  /** The failure of the call; `output` is null then. */
  fault?: { code: string; detail: string; isChange?: boolean }
}
export type Outputs = Readonly<Record<string, StepOutput>>

/** Returns the value at a JSON pointer (RFC 6901). */
export function valueAt(root: unknown, pointer: string): unknown {
  if (pointer === '') return root
  let value = root
  for (const part of pointer.slice(1).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(value)) value = /^(0|[1-9]\d*)$/.test(key) ? value[Number(key)] : undefined
    else value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }
  return value
}

export const textAt = (root: unknown, pointer: string): string | undefined => {
  const value = valueAt(root, pointer)
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined
}

/** Returns the rows of a list with their positions; entries that are no objects are left out. */
export function rowsAt(root: unknown, pointer: string): { row: JsonObject; at: number }[] {
  const list = valueAt(root, pointer)
  if (!Array.isArray(list)) return []
  return list.flatMap((row, at) => (isRecord(row) ? [{ row: row as JsonObject, at }] : []))
}

export const outputOf = (outputs: Outputs, id: string): unknown => outputs[id]?.output

export function stepOutputOf({ name: operation, input }: ToolCall, result: ToolResult): StepOutput {
  const facts = { operation, fetchedAtMs: result.fetchedAt.getTime(), input }
  if (result.ok) return { ...facts, output: result.output }
  return { ...facts, output: null, fault: { code: result.code, detail: result.message } }
}
