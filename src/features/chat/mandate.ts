import type { ToolCall, Turn } from './engine.ts'

/** What the user's own words allow in one turn. It is used up by its use, and nothing that is read widens it. */
export type Mandate = { take(call: Pick<ToolCall, 'name' | 'input'>): boolean }
export type OpenMandate = (turn: Turn) => Promise<Mandate>
