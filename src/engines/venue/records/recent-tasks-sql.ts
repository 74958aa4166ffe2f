/**
 * The tasks of user $1 that ended after $2, as SQL named `recent`. It is materialized, so that the planner does not
 * walk all tasks of the user by id. Without the upper bound the planner would expect a third of all tasks, and
 * could read the whole table.
 */
export const recentTasks = `recent as materialized (
  select * from task where user_id = $1 and completed_at > $2 and completed_at <= 'infinity')`
