/**
 * The tasks of user $1 that ended after $2, as `recent`. It is materialized because, with an order or a limit in
 * the same query, the planner could walk the user's tasks by id instead of those that ended last. The upper
 * bound makes it expect few rows: for a time it does not know, it would expect a third of them, and could read
 * the whole table.
 */
export const recentTasks = `recent as materialized (
  select * from task where user_id = $1 and completed_at > $2 and completed_at <= 'infinity')`
