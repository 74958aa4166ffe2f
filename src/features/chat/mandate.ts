import type { OwnedTurn, ToolCall, ToolResult } from '#kernel/wire/answerer.ts'

export type MadeCall = { call: ToolCall; result: ToolResult }
/**
 * A mandate is the calls that the user's own words allow in one turn. Each use consumes a part of the mandate, and
 * no output of a tool widens it; but an amount that the words name by a result is known only with that result.
 */
export type Mandate = {
  take(call: ToolCall, made: readonly MadeCall[]): boolean
  /** Whether a text is the name of an asset or a chain that the gateway itself lists. */
  isListed(text: string): boolean
}
export type OpenMandate = (turn: OwnedTurn) => Promise<Mandate>
