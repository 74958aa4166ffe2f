import type { Usage } from '#kernel/money/token-prices.ts'
import type { Json, JsonObject } from './json.ts'

/**
 * An answerer answers the turn of a chat: it plans, calls tools and writes. It stores nothing and has no credential. What
 * it is given and gives back is plain JSON but for the dates, so that it runs in a process of its own.
 */

/** Who answers, as a person chooses it. */
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
  /** When it was asked: the same for each run of the turn. */
  askedAt: Date
  /** What the answerer returned as `memory` at the end of the turn before. */
  memory: JsonObject | null
  /** What an earlier run of the turn has said, which stays said. */
  said: string
  /** What is held for the turn: an answerer that pays for a model spends no more. */
  creditsMax: number
}

/** With its user, whom no answerer needs. */
export type OwnedTurn = Turn & { userId: string }

/** `id` names the call within the turn; a repeated run of the turn gives the same call the same id. */
export type ToolCall = {
  id: string
  name: string
  input: JsonObject
  /** A model asks for it, which may have read what strangers wrote: the words of the user have to ask for it too. */
  isFromModel?: boolean
}
export type ToolResult = { fetchedAt: Date } & (
  | { ok: true; output: Json }
  | { ok: false; code: string; message: string }
)

export type Emit = {
  planning(word: (typeof planWords)[number], step: { id: string; text: string }): void
  /** The next piece of the answer. Resolves once it is stored, so that an answerer can write at the pace of its reader. */
  chunk(text: string): Promise<void>
}
/**
 * `change` becomes a recommendation or is started within the user's limit for chats; with `dryrun: true` it runs without
 * effect where it has a dry run.
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
   * Announces the call, and its result, to the listeners. A call that would change anything becomes a recommendation,
   * unless the message orders it within the limit for chats.
   */
  call(call: ToolCall): Promise<ToolResult>
  /**
   * What must not be done twice in a turn, such as asking a model: made once and stored under its name, and answered from
   * there in a repeated run. `usage` of a note counts for a turn that is stopped.
   */
  note(name: string, make: () => Promise<JsonObject>): Promise<JsonObject>
  /** The tools that this turn may call, within the access of its caller. */
  describe(): Promise<readonly ToolDescription[]>
  /** The messages of the thread before this turn, oldest first: the newest ones, up to a bound. */
  history(): Promise<readonly PastMessage[]>
  /** A file of the answer. A repeated run of the turn gives the same file the same name, and stores it once. */
  publish(file: NewFile): Promise<void>
}

export type TurnEnd = {
  stopReason: StopReason
  /** Of all models that the turn has asked, those of earlier runs included; absent where it has asked none. */
  usage?: Usage
  citations: Citation[]
  memory: JsonObject | null
}

export type Answerer = {
  /**
   * Ends soon after the signal. Another instance may run the turn again: its calls are answered from memory then, and
   * what was emitted before is not sent again, so an answerer depends on nothing but the turn and its results.
   */
  run(turn: Turn, tools: Tools, emit: Emit, signal: AbortSignal): Promise<TurnEnd>
}
