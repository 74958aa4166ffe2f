-- When every match of an order that rested was recorded; an order can have ended before its trades are listed.
alter table prediction_order add column reconciled_at timestamptz;
update prediction_order set reconciled_at = ended_at where rests and ended_at is not null;
create index prediction_order_unreconciled on prediction_order (user_id, venue) where rests and reconciled_at is null;
