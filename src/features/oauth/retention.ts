import type { Deletion } from '#durable/upkeep/retention.ts'

/** Reads ignore an expired row, so the time of its deletion does not matter to callers. */
export const oauthDeletions: readonly Deletion[] = [
  {
    name: 'retention of sign-in records',
    ageMs: 0,
    // Grants are excluded, because what an app has set up has to end with its last grant.
    text: `delete from oauth_record where (model, id) in
      (select model, id from oauth_record where expires_at < $1 and model <> 'Grant' order by expires_at limit $2)
      returning id`,
  },
  {
    name: 'retention of sign-in limits',
    ageMs: 0,
    text: `delete from sign_in_limit where key in
      (select key from sign_in_limit where ends_at < $1 order by ends_at limit $2) returning key`,
  },
  {
    name: 'retention of email codes',
    ageMs: 0,
    text: `delete from email_code where interaction in
      (select interaction from email_code where expires_at < $1 order by expires_at limit $2) returning interaction`,
  },
]
