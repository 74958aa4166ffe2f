import type { Json, JsonObject } from '#kernel/json.ts'

/**
 * A turn, its tools and its end in the form of the chat's engines, which no upstream may import. The compiler compares
 * both where the client becomes the engine of the chat.
 */

export type AgentTurn = {
  chatId: string
  agent: string
  query: string
  askedAt: Date
  said: string
  memory: JsonObject | null
  creditsMax: number
}
export type AgentCall = { id: string; name: string; input: JsonObject; isFromModel: boolean }
export type AgentTools = {
  call(call: AgentCall): Promise<AgentResult>
  note(name: string, make: () => Promise<JsonObject>): Promise<JsonObject>
  describe(): Promise<readonly object[]>
  history(): Promise<readonly object[]>
  publish(file: { name: string; contentType: string; bytes: Uint8Array }): Promise<void>
}
export type AgentResult = { fetchedAt: Date } & (
  | { ok: true; output: Json }
  | { ok: false; code: string; message: string }
)
export type AgentEmit = {
  planning(word: 'plan_started' | 'plan_step' | 'plan_finished', step: { id: string; text: string }): void
  chunk(text: string): Promise<void>
}
export type AgentEnd = {
  stopReason: 'end' | 'length' | 'credits'
  usage?: { inputTokens: number; outputTokens: number }
  citations: { n: number; tool: string; pointer: string; fetched_at: string }[]
  memory: JsonObject | null
}
/** The names of chains, tokens and markets, which the service keeps by their version. */
export type AgentNames = { version: string; chains: readonly object[]; assets: readonly object[] }
