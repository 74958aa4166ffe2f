import type { Deletion } from '#durable/upkeep/retention.ts'

/** Gas budgets count one day. Their charges are stored longer, so that an operator can see who used the gas. */

const ageMs = 31 * 86_400_000

export const gasTaskTables = ['sponsor_charge']

export const gasDeletions: readonly Deletion[] = [
  {
    name: 'retention of gas charges',
    ageMs,
    text: `delete from sponsor_charge where task_id = any(array(
      select task_id from sponsor_charge where is_final and day < $1 order by day limit $2)) returning task_id`,
  },
  {
    name: 'retention of gas budgets',
    ageMs,
    text: `delete from sponsor_day where (user_id, chain_id, day) in
      (select user_id, chain_id, day from sponsor_day where day < $1 order by day limit $2) returning day`,
  },
]
