import { sha256 } from '#kernel/id.ts'
import { canonicalJson, type JsonObject } from '#kernel/wire/json.ts'

/**
 * Returns the name of a call's idempotency key. A turn that starts the call and a user who accepts it use the same key,
 * so the call runs once, however the two race.
 */
export const keyOfCall = (chatId: string, callId: string): string => `${chatId} ${callId}`

/** Returns the digest that binds a stored recommendation to its operation and input. */
export const callHash = (operation: string, input: JsonObject): string =>
  sha256(canonicalJson({ operation, input }))
