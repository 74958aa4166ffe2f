-- Tasks, effects, ledger, events, timers. Forward only.

create table task (
  id uuid primary key,
  shard smallint not null,
  user_id uuid not null,
  kind text not null,
  kind_version integer not null,
  status text not null check (status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
  state text not null,
  outcome text check (outcome in ('executed', 'not_executed', 'partial', 'unknown')),
  step text not null,
  data jsonb not null,
  input jsonb not null,
  result jsonb,
  error jsonb,
  priority smallint not null,
  run_at timestamptz not null,
  owner uuid,
  epoch integer not null default 0,
  lease_until timestamptz,
  attempts integer not null default 0,
  deadline timestamptz not null,
  cancel_requested boolean not null default false,
  parent_id uuid,
  idempotency_key text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  completed_at timestamptz,
  constraint unknown_is_never_final check (outcome is distinct from 'unknown' or status = 'running'),
  constraint ended_tells_its_outcome check ((status in ('completed', 'failed', 'cancelled')) = (completed_at is not null and outcome is not null and outcome <> 'unknown'))
) with (fillfactor = 70);
-- Leased work is in neither index entry that a claim scans, and step commits stay HOT: epoch and lease are not indexed.
create index task_ready on task (priority, run_at) where status in ('pending', 'running') and owner is null;
create index task_leased on task (owner) where owner is not null;
create index task_of_user on task (user_id, id desc);

create table task_step (
  task_id uuid not null references task (id),
  step text not null,
  epoch integer not null,
  attempt integer not null,
  out jsonb not null,
  at timestamptz not null
);
create index task_step_of_task on task_step (task_id);

create table idempotency (
  user_id uuid not null,
  key text not null check (length(key) between 1 and 255),
  operation text not null,
  body_hash text not null,
  task_id uuid references task (id),
  response jsonb,
  at timestamptz not null,
  primary key (user_id, key)
);

create table lane (
  kind text not null,
  chain text not null,
  signer text not null,
  next bigint not null,
  primary key (kind, chain, signer)
);

create table effect (
  id uuid primary key,
  task_id uuid not null references task (id),
  step text not null,
  kind text not null,
  intent jsonb not null,
  signed jsonb not null,
  ext_id text not null,
  status text not null check (status in ('prepared', 'sent', 'confirmed', 'rejected', 'dropped', 'unknown')),
  policy_receipt text not null,
  proof jsonb,
  valid_until timestamptz,
  at timestamptz not null,
  unique (kind, ext_id)
);
create index effect_of_task on effect (task_id);
create index effect_live on effect (kind, at) where status in ('prepared', 'sent', 'unknown');

create table carrier (
  effect_id uuid not null references effect (id),
  n integer not null,
  raw text not null,
  ext_id text not null unique,
  lane_kind text not null,
  chain text not null,
  signer text not null,
  nonce bigint not null,
  status text not null check (status in ('prepared', 'sent', 'confirmed', 'replaced', 'dropped')),
  at timestamptz not null,
  primary key (effect_id, n),
  unique (lane_kind, chain, signer, nonce, n)
);

create table account (
  id bigint generated always as identity primary key,
  shard smallint not null,
  owner uuid not null,
  asset text not null,
  book text not null,
  avail numeric(78, 0) not null default 0,
  held numeric(78, 0) not null default 0 check (held >= 0),
  settlements bigint not null default 0,
  unique (owner, asset, book),
  constraint only_the_outside_may_owe check (avail >= 0 or book = 'outside')
) with (fillfactor = 70);

create table transfer (
  id bigint generated always as identity primary key,
  debit bigint not null references account (id),
  credit bigint not null references account (id),
  key text not null,
  amount numeric(78, 0) not null check (amount > 0),
  state text not null check (state in ('pending', 'posted', 'voided')),
  task_id uuid,
  reason text not null,
  at timestamptz not null,
  settled_at timestamptz,
  unique (key)
);
create index transfer_of_task on transfer (task_id) where task_id is not null;

-- Append-only: the truth from which every balance can be counted again.
create table entry (
  account_id bigint not null references account (id),
  transfer_id bigint not null references transfer (id),
  phase text not null check (phase in ('transfer', 'hold', 'post', 'void')),
  d_avail numeric(78, 0) not null,
  d_held numeric(78, 0) not null,
  at timestamptz not null,
  primary key (account_id, transfer_id, phase)
);
create index entry_of_transfer on entry (transfer_id);

create function entry_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'ledger entries are never changed';
end $$;
create trigger entry_append_only before update or delete on entry for each row execute function entry_is_append_only();

create function entries_balance() returns trigger language plpgsql as $$
begin
  if (select sum(d_avail + d_held) from entry where transfer_id = new.transfer_id) <> 0 then
    raise exception 'entries of transfer % do not sum to zero', new.transfer_id;
  end if;
  return null;
end $$;
create constraint trigger entries_sum_to_zero after insert on entry
  deferrable initially deferred for each row execute function entries_balance();

create table user_stream (
  user_id uuid primary key,
  seq bigint not null
);

create table outbox (
  user_id uuid not null,
  seq bigint not null,
  type text not null,
  task_id uuid,
  subject jsonb,
  body jsonb not null,
  at timestamptz not null,
  primary key (user_id, seq)
);
create index outbox_age on outbox (at);

create table schedule (
  id uuid primary key,
  user_id uuid,
  kind text not null,
  input jsonb not null,
  every_seconds integer,
  cron text,
  timezone text not null default 'UTC',
  misfire text not null default 'once' check (misfire in ('skip', 'once')),
  status text not null default 'active' check (status in ('active', 'paused', 'ended')),
  next_at timestamptz,
  last_slot timestamptz,
  created_at timestamptz not null
);
create index schedule_due on schedule (next_at) where status = 'active';

create table trigger_order (
  id uuid primary key,
  user_id uuid not null,
  kind text not null,
  market text not null,
  direction text not null check (direction in ('lte', 'gte')),
  trigger_price numeric not null,
  oco_group uuid,
  input jsonb not null,
  status text not null check (status in ('armed', 'fired', 'cancelled', 'expired')),
  task_id uuid,
  expires_at timestamptz,
  created_at timestamptz not null
);
create index trigger_armed on trigger_order (market, direction, trigger_price) where status = 'armed';
create index trigger_oco on trigger_order (oco_group) where oco_group is not null;

create table market_watch (
  market text primary key,
  owner uuid,
  epoch integer not null default 0,
  lease_until timestamptz,
  last_price numeric,
  seen_at timestamptz
);

create table instance (
  id uuid primary key,
  started_at timestamptz not null,
  seen_at timestamptz not null
);

create table audit (
  user_id uuid not null,
  seq bigint not null,
  prev text not null,
  hash text not null,
  body jsonb not null,
  at timestamptz not null,
  primary key (user_id, seq)
);
