import type { OwnedTurn, ToolCall, ToolResult } from '#kernel/wire/answerer.ts'

export type MadeCall = { call: ToolCall; result: ToolResult }
/**
 * The calls that the user's own words allow in one turn. Each use consumes a part of it, and nothing that tools return
 * widens it; but if the words name an amount by a result, that result is needed to know the amount.
 */
export type Mandate = {
  take(call: ToolCall, made: readonly MadeCall[]): boolean
  /** Whether a text is the name of an asset or a chain that the gateway itself lists. */
  isListed(text: string): boolean
}
export type OpenMandate = (turn: OwnedTurn) => Promise<Mandate>
