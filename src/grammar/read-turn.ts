import type { Turn } from '#kernel/wire/chat-answerer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Clause } from './clauses.ts'
import type { Registry } from './operation-registry.ts'
import { remember, type ThreadState } from './thread-memory.ts'
import { splitMessage, understandText } from './understand-message.ts'
import type { Understanding } from './understanding.ts'

/** Reads a turn of a chat by the grammar, and writes what the thread remembers of the turn. */

export type TurnReading = {
  turn: Turn
  clauses: readonly Clause[]
  understanding: Understanding
  registry: Registry
}

const stateOf = ({ memory }: Turn): ThreadState => (memory ?? {}) as ThreadState
export const readTurn = (turn: Turn, registry: Registry): TurnReading => {
  const context = { nowMs: turn.askedAt.getTime(), state: stateOf(turn) }
  const message = splitMessage(turn.query, registry)
  const understanding = understandText(message, context, registry)
  return { turn, clauses: message.clauses, understanding, registry }
}

/** What an answer adds to the memory of its thread: the recommendations that it made, and the task it started last. */
type Done = { proposed?: readonly string[]; startedTaskId?: string | undefined }

/** Returns what a thread remembers of a message and of its answer. */
export function memoryAfter(
  { turn, understanding }: Pick<TurnReading, 'turn' | 'understanding'>,
  { proposed = [], startedTaskId: taskId }: Done = {},
): JsonObject {
  const atMs = turn.askedAt.getTime()
  const memory: ThreadState = {
    ...remember(stateOf(turn), understanding, atMs),
    ...(proposed.length > 0 && { recommendations: { items: proposed.map((id) => ({ id })), atMs } }),
    ...(taskId !== undefined && { started: { taskId, atMs } }),
  }
  return JSON.parse(JSON.stringify(memory)) as JsonObject
}
