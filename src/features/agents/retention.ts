import type { Deletion } from '#durable/upkeep/retention.ts'

/** Reads ignore an expired row, so the time of its deletion does not matter to callers. */
export const agentDeletions: readonly Deletion[] = [
  {
    name: 'retention of link codes',
    // A link request that was made with a replaced code waits for its person no longer than an hour.
    ageMs: 3_600_000,
    text: `delete from agent_link_code where user_id in
      (select user_id from agent_link_code where expires_at < $1 order by expires_at limit $2) returning user_id`,
  },
]
