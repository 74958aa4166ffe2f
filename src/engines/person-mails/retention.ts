import type { Deletion } from '#durable/upkeep/retention.ts'

/** Deletes the rows of people without a waiting message, which only record when the last message was sent. */
export const mailDeletion: Deletion = {
  name: 'retention of messages to people',
  ageMs: 86_400_000,
  text: `delete from person_mail where (person_id, kind) in
    (select person_id, kind from person_mail where due_at is null and sent_at < $1 order by sent_at limit $2
     for update skip locked) returning kind`,
}
