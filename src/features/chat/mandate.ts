import type { OwnedTurn, ToolCall, ToolResult } from '#kernel/wire/answerer.ts'

/** A call of the turn with its result. */
export type MadeCall = { call: ToolCall; result: ToolResult }
/**
 * What the user's own words allow in one turn. It is used up by its use, and nothing that is read widens it; what was
 * read may be needed for an amount that the words name by it.
 */
export type Mandate = {
  take(call: ToolCall, made: readonly MadeCall[]): boolean
  /** Whether a text is the name of an asset or a chain that the gateway itself lists. */
  isListed(text: string): boolean
}
export type OpenMandate = (turn: OwnedTurn) => Promise<Mandate>
