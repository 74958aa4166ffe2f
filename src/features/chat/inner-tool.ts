import type { Json, JsonObject } from '#kernel/wire/json.ts'

/**
 * A tool of the answerers alone, which no door has: it reads what is the same for every user, such as the candles of a
 * market. Its output is stored as that of an operation.
 */
export type InnerTool = {
  description: string
  /** A JSON Schema with an object at its root. */
  inputSchema: JsonObject
  call(input: JsonObject, context: InnerToolContext): Promise<Json>
}
export type InnerToolContext = {
  /** Whose share of an upstream's budget is used. */
  userId: string
  signal: AbortSignal
}
