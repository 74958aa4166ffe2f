-- Fills with the profit that the venue counts for them, and orders as they were sent: what a history shows. Forward only.

-- Null in rows of an instance that did not write it yet.
alter table venue_fill add column realized_pnl numeric;

alter table venue_order add column market text check (market in ('perp', 'spot'));
alter table venue_order add column is_buy boolean;
alter table venue_order add column size numeric;
alter table venue_order add column price numeric;
alter table venue_order add column trigger_price numeric;
alter table venue_order add column reduce_only boolean;
