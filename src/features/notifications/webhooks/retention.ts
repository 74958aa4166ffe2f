import type { Deletion } from '#durable/upkeep/retention.ts'

/** A replaced secret is deleted once it has expired, since only a thief could use it. */
export const webhookDeletions: readonly Deletion[] = [
  {
    name: 'retention of webhook secrets',
    ageMs: 0,
    // Rows that a concurrent rotation locks are skipped, so that neither waits for the other.
    text: `delete from webhook_secret where secret_id in
      (select secret_id from webhook_secret where expires_at < $1 order by expires_at limit $2 for update skip locked)
      returning secret_id`,
  },
]
