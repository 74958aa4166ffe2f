-- The hash of the transaction of the venue's chain that has made a fill. Null: the venue has not said, or the fill was
-- imported before.
alter table venue_fill add column tx_hash text;
