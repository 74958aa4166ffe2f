import type { Account } from './state.ts'
import type { Venue } from './venue.ts'

export type ActionResponse = { type: string; data?: unknown }

/** Its result is undefined where the venue answers with the default response. */
export type ActionHandler = (
  venue: Venue,
  account: Account,
  action: Record<string, unknown>,
) => ActionResponse | undefined
