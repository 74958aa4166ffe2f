import type { JsonObject } from '#kernel/wire/json.ts'
import type { categories, priorities } from './execution-schemas.ts'

/** A recommended change of a schedule. */
export type Advice = {
  /** The subject of the advice; advice with a subject that the user has removed is not given again. */
  subject: string
  priority: (typeof priorities)[number]
  category: (typeof categories)[number]
  title: string
  why: string
  steps: string[]
  evidence: string[]
  action?: { operation: string; input: JsonObject }
  expiresAt?: Date
}
