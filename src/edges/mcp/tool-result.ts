import { faultView } from '#invoke/fault-view.ts'
import { type Fault, internalFault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { ToolView } from './tool-view.ts'

export type ToolResult = {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta?: Record<string, unknown>
}

const textOf = (value: unknown) => [{ type: 'text' as const, text: JSON.stringify(value) }]

export function answerResult(
  body: unknown,
  { outputSchema }: Pick<ToolView, 'outputSchema'>,
  { replayed, key }: { replayed: boolean; key?: string },
): ToolResult {
  return {
    content: textOf(body ?? null),
    ...(outputSchema && isRecord(body) && { structuredContent: body }),
    ...((replayed || key !== undefined) && {
      _meta: { 'portico/replayed': replayed, ...(key !== undefined && { 'portico/idempotency_key': key }) },
    }),
  }
}

/** A model reads this result: it says what is wrong, where, and whether a repeat can help. */
export function faultResult(fault: Fault): ToolResult {
  const { code, message, status, retryable, extras, issues } = faultView(fault)
  const shown = issues.map(({ path, ...issue }) => ({ field: path.join('.'), path, ...issue }))
  const error = {
    code,
    message,
    status,
    retryable,
    ...(shown.length > 0 ? { issues: shown } : { details: extras }),
  }
  return { content: textOf({ error }), isError: true }
}

export const bugResult = (error: unknown): ToolResult =>
  faultResult(internalFault(error, { mayHaveActed: false }))
