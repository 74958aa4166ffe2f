import type { Deletion } from '#durable/upkeep/retention.ts'

/** The table says when a row ends; an ended row is invisible before it is deleted. */
export const agentDeletions: readonly Deletion[] = [
  {
    name: 'retention of link codes',
    // A link that was asked for by an earlier code waits for its person no longer than this.
    ageMs: 3_600_000,
    text: `delete from agent_link_code where user_id in
      (select user_id from agent_link_code where expires_at < $1 order by expires_at limit $2) returning user_id`,
  },
]
