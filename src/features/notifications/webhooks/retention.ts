import type { Deletion } from '#durable/upkeep/retention.ts'

/** A former secret that signs no more is of no use to anybody but a thief. */
export const webhookDeletions: readonly Deletion[] = [
  {
    name: 'retention of webhook secrets',
    ageMs: 0,
    // A rotation that deletes some of them too is not waited for, so that neither waits for the other.
    text: `delete from webhook_secret where secret_id in
      (select secret_id from webhook_secret where expires_at < $1 order by expires_at limit $2 for update skip locked)
      returning secret_id`,
  },
]
