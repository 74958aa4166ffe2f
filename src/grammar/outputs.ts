import { isRecord, type JsonObject } from '#kernel/wire/json.ts'

/** What the operations of a plan answered, by the id of their step. */
export type StepOutput = {
  operation: string
  output: unknown
  fetchedAtMs: number
  /** What the operation was called with. */
  input?: JsonObject
  /** It failed, and `output` is nothing. */
  fault?: { code: string; detail: string }
}
export type Outputs = Readonly<Record<string, StepOutput>>

/** A value by its JSON pointer (RFC 6901). */
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

/** The rows of a list, with their positions; others than objects are left out. */
export function rowsAt(root: unknown, pointer: string): { row: JsonObject; at: number }[] {
  const list = valueAt(root, pointer)
  if (!Array.isArray(list)) return []
  return list.flatMap((row, at) => (isRecord(row) ? [{ row: row as JsonObject, at }] : []))
}

export const outputOf = (outputs: Outputs, id: string): unknown => outputs[id]?.output
