import type { Deletion } from '#durable/upkeep/retention.ts'

const dayMs = 86_400_000

/** Deletes files by age, then content that no file uses, and file keys, which sign for a day, after three days. */
export const fileDeletions = (filesMs: number): readonly Deletion[] => [
  {
    name: 'retention of files',
    ageMs: filesMs,
    text: `delete from file where id in
      (select id from file where created_at < $1 order by created_at limit $2) returning id`,
  },
  {
    name: 'retention of file content',
    ageMs: dayMs,
    // Postgres checks this condition again for a row that was stored again meanwhile, so that row stays.
    text: `delete from file_content c where c.stored_at < $1 and c.sha256 in
      (select k.sha256 from file_content k where k.stored_at < $1
        and not exists (select from file f where f.sha256 = k.sha256)
        order by k.stored_at limit $2) returning c.sha256`,
  },
  {
    name: 'retention of ends of file addresses',
    ageMs: dayMs,
    text: `delete from file_link_end where user_id in
      (select user_id from file_link_end where ended_at < $1 order by ended_at limit $2) returning user_id`,
  },
  {
    name: 'retention of file keys',
    ageMs: 3 * dayMs,
    text: `delete from file_key where id in
      (select id from file_key where created_at < $1 order by created_at limit $2) returning id`,
  },
]
