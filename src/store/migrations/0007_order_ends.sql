-- How an order at a venue ended, so that its owner is told once. Forward only.
alter table venue_order add column status text;
alter table venue_order add column ended_at timestamptz;
create index venue_order_open on venue_order (user_id, venue, at) where ended_at is null;
