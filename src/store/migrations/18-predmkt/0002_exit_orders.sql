-- The purchase whose shares the order of an exit sells; null for an order of the user.
alter table prediction_order add column entry_order_id text;
create index prediction_order_of_entry on prediction_order (entry_order_id) where entry_order_id is not null;
