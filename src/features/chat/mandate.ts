import type { ToolCall, ToolResult } from '#kernel/wire/chat-answerer.ts'

export type MadeCall = { call: ToolCall; result: ToolResult }
/**
 * A mandate is the set of calls that the user's own words allow in one turn. Each use consumes a part of it, and no
 * output of a tool widens it. If the words name an amount by the result of another call, the amount is known only after
 * that call.
 */
export type Mandate = {
  take(call: ToolCall, made: readonly MadeCall[]): boolean
  /** Whether the message orders a call by its own words, beyond the calls that were begun for the message. */
  orders(call: ToolCall, calls: { made: readonly MadeCall[]; begun: readonly ToolCall[] }): boolean
  /** Whether a text is the name of an asset or a chain that the gateway itself lists. */
  isListed(text: string): boolean
}
