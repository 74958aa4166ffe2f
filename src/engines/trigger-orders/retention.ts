/** Deletes orders that fired, expired or were cancelled. One with a running task stays: it may be armed again. */
export const orderDeletion = (ageMs: number) => ({
  name: 'retention of orders',
  ageMs,
  text: `delete from trigger_order where id in
    (select id from trigger_order o where status in ('fired', 'cancelled', 'expired') and updated_at < $1
      and not exists (select from task_queue q where q.task_id = o.task_id) order by updated_at limit $2) returning id`,
})
