-- After the earlier rows: their updates cost less without these indexes, and each row is indexed once.
alter table trigger_order validate constraint trigger_order_task_end_check;
create index trigger_executing on trigger_order (user_id, kind, id desc) where status = 'fired' and task_end is null;
create index trigger_of_end on trigger_order (user_id, kind, task_end, id desc) where status = 'fired' and task_end is not null;
