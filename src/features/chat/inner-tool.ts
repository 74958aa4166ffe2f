import type { Json, JsonObject } from '#kernel/wire/json.ts'

/**
 * A tool that only answerers have; no interface of the gateway offers it to clients. It reads what is the same for
 * every user, such as the candles of a market. Its output is stored like that of an operation.
 */
export type InnerTool = {
  description: string
  inputSchema: JsonObject
  call(input: JsonObject, context: InnerToolContext): Promise<Json>
}
export type InnerToolContext = {
  /** The user whose share of the upstream's request budget the call uses. */
  userId: string
  signal: AbortSignal
}
