-- Orders whose task ended before their rows said so.
update trigger_order o set task_end = t.status from task t
  where t.id = o.task_id and o.status = 'fired' and o.task_end is null and t.completed_at is not null;
-- Those whose task was deleted by age: what it signed is kept.
update trigger_order o set task_end = case when exists
    (select from effect e where e.task_id = o.task_id and e.status = 'confirmed') then 'completed' else 'failed' end
  where o.status = 'fired' and o.task_end is null and o.task_id is not null
    and not exists (select from task t where t.id = o.task_id);
