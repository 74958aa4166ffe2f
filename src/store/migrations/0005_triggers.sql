-- Exits that the house keeps where the venue has none. Forward only.

-- `waiting`: until the order that it protects has filled. `parent` is that order's id at the venue, `origin` the task
-- that asked for the exit.
alter table trigger_order drop constraint trigger_order_status_check;
alter table trigger_order add constraint trigger_order_status_check
  check (status in ('waiting', 'armed', 'fired', 'cancelled', 'expired'));
alter table trigger_order add column parent text;
alter table trigger_order add column origin uuid;
create index trigger_open on trigger_order (user_id, created_at) where status in ('waiting', 'armed');
create index trigger_waiting on trigger_order (market) where status = 'waiting';
