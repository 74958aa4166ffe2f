import type { Deletion } from '#durable/upkeep/retention.ts'

const dayMs = 86_400_000

/**
 * Idempotency keys of backends are stored as long as the replies to other requests. Ended backend keys are stored for a
 * while, so that lists show them.
 */
export const imageDeletions = (repliesMs: number): readonly Deletion[] => [
  {
    name: 'retention of requests of backends',
    ageMs: repliesMs,
    text: `delete from backend_request where (backend_id, key_hash) in
      (select backend_id, key_hash from backend_request where at < $1 order by at limit $2) returning backend_id`,
  },
  {
    name: 'retention of backend keys',
    ageMs: 30 * dayMs,
    text: `delete from backend_key where id in
      (select id from backend_key where expires_at < $1 order by expires_at limit $2) returning id`,
  },
]
