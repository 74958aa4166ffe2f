import type { Deletion } from '#durable/upkeep/retention.ts'

/** Limits count the last 24 hours. A reservation stays until its task has ended, however long that takes. */

const ageMs = 48 * 3_600_000

export const policyTaskTables = ['policy_spend', 'policy_chat_spend']

export const policyDeletions: readonly Deletion[] = [
  {
    name: 'retention of reserved spend',
    ageMs,
    text: `delete from policy_spend where task_id = any(array(
      select task_id from policy_spend s where at < $1
        and exists (select from task where id = s.task_id and completed_at is not null)
      order by at limit $2)) returning task_id`,
  },
  {
    name: 'retention of spend of chats',
    ageMs,
    text: `delete from policy_chat_spend where task_id = any(array(
      select task_id from policy_chat_spend c where at < $1
        and not exists (select from policy_spend where task_id = c.task_id)
      order by at limit $2)) returning task_id`,
  },
  {
    name: 'retention of sums of spend',
    ageMs,
    text: `delete from policy_spend_minute where (user_id, minute) in
      (select user_id, minute from policy_spend_minute where minute < $1 order by minute limit $2) returning minute`,
  },
]
