-- Addresses to which the gateway posts the events of a user.

create table webhook (
  webhook_id uuid primary key,
  user_id uuid not null,
  url text not null check (length(url) <= 2048),
  -- Types that are sent; null: all.
  types text[],
  description text not null check (length(description) <= 200),
  created_at timestamptz not null,
  unique (user_id, url)
);

-- Secrets that sign, in the envelope encryption of wallet keys. The newest of a webhook has no end.
create table webhook_secret (
  secret_id uuid primary key,
  webhook_id uuid not null references webhook (webhook_id) on delete cascade,
  ciphertext bytea not null,
  wrapped_dek bytea not null,
  kek_id text not null,
  created_at timestamptz not null,
  -- Set by a rotation: until then both secrets sign.
  expires_at timestamptz
);
create index webhook_secret_of_webhook on webhook_secret (webhook_id);
create index webhook_secret_age on webhook_secret (expires_at) where expires_at is not null;
create index webhook_secret_of_key on webhook_secret (kek_id);

-- How far the event log of the user was delivered: one row per webhook, whatever the number of events.
create table webhook_cursor (
  webhook_id uuid primary key references webhook (webhook_id) on delete cascade,
  user_id uuid not null,
  -- The last event that was delivered or that the webhook does not want.
  seq bigint not null,
  status text not null check (status in ('enabled', 'disabled')),
  -- failing: the last attempt failed; unsubscribed: the address answered 410.
  disabled_reason text check (disabled_reason in ('failing', 'unsubscribed')),
  disabled_at timestamptz,
  -- Failed attempts of the next event, and when it is tried again.
  attempts integer not null,
  retry_at timestamptz,
  -- The last answer took long: such webhooks share few connections.
  is_slow boolean not null,
  -- Messages that were begun; names the row of webhook_delivery.
  messages bigint not null,
  -- The instance that delivers; void where its lease has ended.
  owner uuid,
  -- Fencing token: raised by each claim and by each change of a user.
  epoch bigint not null,
  claimed_at timestamptz
-- Each delivery updates one narrow row, and no index: free space keeps the updates within the page (HOT).
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);
create index webhook_cursor_of_user on webhook_cursor (user_id);

-- The last messages of each webhook: a ring, so that the table does not grow with the events.
create table webhook_delivery (
  webhook_id uuid not null references webhook (webhook_id) on delete cascade,
  slot integer not null,
  message bigint not null,
  -- Number of the event.
  seq bigint not null,
  event_type text not null,
  status text not null check (status in ('delivered', 'retrying', 'failed')),
  attempts integer not null,
  -- Of the last attempt; null without an answer.
  response_status integer,
  -- Why there was no answer, or that it was not a success; nothing of the answer itself.
  error text,
  duration_ms integer not null,
  first_attempt_at timestamptz not null,
  last_attempt_at timestamptz not null,
  next_attempt_at timestamptz,
  primary key (webhook_id, slot)
) with (fillfactor = 70);
