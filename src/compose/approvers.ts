import type { Config } from '#config.ts'
import type { Approvers } from '#durable/approval-events.ts'
import { personOf } from '#engines/agent-links/owners.ts'
import { ownPages } from './own-pages.ts'

/** Who approves what policy reserves for a person, and the page for it. */
export function approversOf(config: Config, baseUrl: () => string): Approvers {
  return {
    personOf: async (db, userId) =>
      config.AUTH_MODE === 'off' ? undefined : (await personOf(db, userId))?.userId,
    // Another server's people decide over the interface: this gateway has no pages for them.
    page: () => ownPages(config, baseUrl)?.approvals,
  }
}
