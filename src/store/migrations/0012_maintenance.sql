-- Which instance forgets old rows and audits the ledger in this interval: the one whose statement moves the time on.
create table maintenance_run (
  name text primary key,
  started_at timestamptz not null
);
-- Replies that are forgotten by age; the keys of tasks are not in it.
create index idempotency_reply_age on idempotency (at) where task_id is null;
