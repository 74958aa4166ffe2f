-- How long the last run took: what reads the whole ledger rests for many times as long.
alter table maintenance_run add column took_ms bigint not null default 0;
