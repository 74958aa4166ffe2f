import type { ToolCall, ToolResult, Turn } from '#kernel/wire/answerer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Registry } from './registry.ts'
import type { StepOutput } from './step-outputs.ts'
import { remember, type ThreadState } from './thread.ts'
import { understand } from './understand.ts'
import type { Understanding } from './understanding.ts'

/** Reads a turn of a chat by the grammar, and writes what the thread remembers of the turn. */

export const stateOf = ({ memory }: Turn): ThreadState => (memory ?? {}) as ThreadState
export const readTurn = (turn: Turn, registry: Registry): Understanding =>
  understand(turn.query, { nowMs: turn.askedAt.getTime(), state: stateOf(turn) }, registry)

/** Returns what a thread remembers of a message that an answerer other than the grammar has answered. */
export const memoryAfter = (turn: Turn, understanding: Understanding): JsonObject =>
  JSON.parse(JSON.stringify(remember(stateOf(turn), understanding, turn.askedAt.getTime()))) as JsonObject

export function stepOutputOf({ name: operation, input }: ToolCall, result: ToolResult): StepOutput {
  const facts = { operation, fetchedAtMs: result.fetchedAt.getTime(), input }
  if (result.ok) return { ...facts, output: result.output }
  return { ...facts, output: null, fault: { code: result.code, detail: result.message } }
}
