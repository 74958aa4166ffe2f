import type { Usage } from '#kernel/money/model-token-prices.ts'
import type { Json, JsonObject } from './json.ts'

/**
 * An answerer answers the turn of a chat: it plans, calls tools and writes. It stores nothing and has no
 * credential. Its inputs and outputs are plain JSON except for dates, so that it can run in a separate process.
 */

export const agents = ['ProAgent', 'ProDeepResearchAgent', 'MarketAnalyzerAgent'] as const
export type Agent = (typeof agents)[number]

export const planWords = ['plan_started', 'plan_step', 'plan_finished'] as const
export const stopReasons = ['end', 'length', 'credits'] as const
export type StopReason = (typeof stopReasons)[number]

/** `pointer` is a JSON pointer into the output of the tool. */
export type Citation = { n: number; tool: string; pointer: string; fetched_at: string }
export type NewFile = { name: string; contentType: string; bytes: Uint8Array }

export type Turn = {
  chatId: string
  agent: Agent
  query: string
  /** When the question was asked, which is the same for each run of the turn. */
  askedAt: Date
  /** The `memory` that the answerer returned at the end of the previous turn. */
  memory: JsonObject | null
  /** The text that an earlier run of the turn has emitted, which cannot be taken back. */
  said: string
  /** The credits that are held for the turn: an answerer that pays for a model spends no more. */
  creditsMax: number
}

/** A turn with its user, whom answerers do not need to know. */
export type OwnedTurn = Turn & { userId: string }

/** `id` names the call within the turn; a repeated run of the turn gives the same call the same id. */
export type ToolCall = {
  id: string
  name: string
  input: JsonObject
  /**
   * True if a model asks for the call. The model may have read text by strangers, so the user's words have to ask
   * for the call too.
   */
  isFromModel?: boolean
}
export type ToolResult = { fetchedAt: Date } & (
  | { ok: true; output: Json }
  | { ok: false; code: string; message: string }
)

export type Emit = {
  planning(word: (typeof planWords)[number], step: { id: string; text: string }): void
  /** Emits the next piece of the answer. Resolves once it is stored, so an answerer can follow its reader's pace. */
  chunk(text: string): Promise<void>
}
/**
 * A tool as an answerer sees it. A call with the effect `change` becomes a recommendation or starts within the
 * user's limit for chats; with `dryrun: true` it has no effect.
 */
export type ToolDescription = {
  name: string
  description: string
  inputSchema: JsonObject
  effect: 'read' | 'tighten' | 'change'
  hasDryRun: boolean
}
export type PastMessage = { role: 'user' | 'assistant'; text: string }
export type Tools = {
  /**
   * Announces the call and its result. A change becomes a recommendation, unless the user's message orders the
   * change and it is within the limit for chats.
   */
  call(call: ToolCall): Promise<ToolResult>
  /**
   * Does something that must not be done twice in a turn, such as asking a model: the result is stored under its name,
   * and a repeated run of the turn reads it from there. The `usage` fields of these results are what a stopped turn has
   * used.
   */
  note(name: string, make: () => Promise<JsonObject>): Promise<JsonObject>
  describe(): Promise<readonly ToolDescription[]>
  /** Returns the newest messages of the thread before this turn, up to a bound, oldest first. */
  history(): Promise<readonly PastMessage[]>
  /** Publishes a file of the answer. A repeated run of the turn uses the same name, and the file is stored once. */
  publish(file: NewFile): Promise<void>
}

export type TurnEnd = {
  stopReason: StopReason
  /** The usage of all models that the turn has asked, earlier runs included; absent if it has asked none. */
  usage?: Usage
  citations: Citation[]
  memory: JsonObject | null
}

export type Answerer = {
  /**
   * Answers a turn, and ends soon after the signal aborts. Another instance may run the turn again: stored results then
   * answer its calls, and text that was emitted before is not sent again. So an answerer must depend only on the turn
   * and on the results of its calls.
   */
  run(turn: Turn, tools: Tools, emit: Emit, signal: AbortSignal): Promise<TurnEnd>
}
