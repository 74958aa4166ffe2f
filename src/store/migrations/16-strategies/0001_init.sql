-- Strategies: scheduled chats of users, their versions, and what became of each of their slots. A slot is an instant of
-- the calendar of a version.

create table strategy (
  id uuid primary key,
  user_id uuid not null,
  title text not null,
  -- The version that the next slot runs.
  version integer not null check (version > 0),
  status text not null check (status in ('draft', 'active', 'paused', 'disabled', 'completed')),
  status_reason text,
  -- The chat to which a run writes.
  thread_id uuid,
  notify text not null check (notify in ('all', 'failures', 'none')),
  -- The next slot.
  next_at timestamptz,
  -- The slot after it, which a run computes ahead; null where none has.
  following_at timestamptz,
  -- The zone data with which next_at was computed, such as '2026c'.
  tz_version text,
  -- Records of any type: the number of the last one.
  execution_count integer not null default 0,
  -- Runs of slots, and slots that did not run.
  run_count integer not null default 0,
  skipped_count integer not null default 0,
  last_run_at timestamptz,
  activated_at timestamptz,
  -- When its recommendations were made last.
  recommended_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint active_strategy_has_a_slot check ((status = 'active') = (next_at is not null)),
  constraint following_slot_is_later check (following_at is null or (next_at is not null and following_at > next_at))
-- Each slot updates the row once with its indexes, and the run that computes the slot after it once without (HOT).
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index strategy_due on strategy (next_at) where next_at is not null;
-- Slots that were computed with older zone data.
create index strategy_zone_data on strategy (tz_version) where next_at is not null;
-- A user has 100 at most, so a list filters what this finds.
create index strategy_of_user on strategy (user_id, id desc);

-- What a strategy does and when. An edit inserts another version; a run has the version of its slot, which never changes.
create table strategy_version (
  strategy_id uuid not null references strategy (id),
  version integer not null check (version > 0),
  type text not null check (type in ('prompt', 'dca', 'rebalance', 'condition', 'day_trade_farming')),
  query text not null,
  agent text not null,
  mode text not null check (mode in ('paper', 'live')),
  -- The times of the runs, with their zone, start and end. Null: a draft that has none yet.
  calendar jsonb,
  max_runs integer check (max_runs > 0),
  -- Whether the newest missed slot runs, if it is at most so old.
  on_missed text not null check (on_missed in ('run_latest', 'skip')),
  catch_up_seconds integer not null check (catch_up_seconds between 0 and 86400),
  config jsonb,
  guards jsonb,
  tools_allowed text[],
  budget_usd numeric check (budget_usd > 0),
  paper_balance_usd numeric not null check (paper_balance_usd > 0),
  -- What the sentence was understood as: operations, and the most that a run and a day may spend.
  compiled jsonb,
  -- In whose name the version runs: user, app and scopes, without a credential. Each activation stores it.
  authority jsonb,
  -- The approval of a person for all runs of this version.
  approval_id uuid,
  created_at timestamptz not null,
  primary key (strategy_id, version)
);

-- A run, or slots that did not run. The task of a run has the same id.
create table strategy_execution (
  id uuid primary key,
  strategy_id uuid not null references strategy (id),
  user_id uuid not null,
  version integer not null,
  -- Counts the records of the strategy from 1.
  number integer not null,
  execution_type text not null check (execution_type in ('scheduled', 'catch_up', 'manual', 'paper', 'backtest')),
  mode text not null check (mode in ('paper', 'live')),
  -- Null where a user started the run. Of several slots that did not run, the newest.
  slot timestamptz,
  -- Of slots that did not run: the oldest, and how many there are.
  first_slot timestamptz,
  skipped_slots integer not null default 0,
  status text not null check (status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
  outcome text check (outcome in ('executed', 'not_executed', 'partial', 'unknown')),
  -- Why the slots did not run, or why a run ended without a decision.
  skip_reason text,
  error jsonb,
  -- The action with its reason and the SHA-256 of what it was decided from.
  decision jsonb,
  summary text,
  answer text,
  -- The chat that a run of a prompt started.
  chat_id uuid,
  credits_used integer,
  spent_usd numeric,
  realized_pnl_usd numeric,
  usage jsonb,
  rating smallint check (rating between 1 and 5),
  rating_comment text,
  rated_at timestamptz,
  -- In whose name a run acts that a user has started; null for a slot, which has the authority of its version.
  authority jsonb,
  created_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz,
  constraint ended_execution_has_an_end check ((status in ('pending', 'running')) = (ended_at is null)),
  constraint skipped_slots_have_a_reason check (skipped_slots = 0
    or (skip_reason is not null and first_slot is not null and status = 'cancelled'))
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
-- Lists, newest first.
create unique index strategy_execution_number on strategy_execution (strategy_id, number desc);
-- Each slot once.
create unique index strategy_execution_slot on strategy_execution (strategy_id, slot) where slot is not null;
-- Runs that have not ended: a slot that meets one is skipped.
create index strategy_execution_open on strategy_execution (strategy_id) where status in ('pending', 'running');

-- What a run did, numbered from 1 without gaps. Deleted by age, in the order of the ids, which have the time.
create table strategy_event (
  execution_id uuid not null,
  seq integer not null check (seq > 0),
  type text not null check (type in ('log', 'planning', 'tool_call', 'tool_response', 'trade', 'error', 'done')),
  data jsonb not null,
  created_at timestamptz not null,
  primary key (execution_id, seq)
);

-- What the user should change, as the records of a strategy show it.
create table strategy_recommendation (
  id uuid primary key,
  strategy_id uuid not null references strategy (id),
  -- What it is about: one that the user has declined is not made again.
  subject text not null,
  priority text not null check (priority in ('now', 'soon', 'later')),
  category text not null check (category in ('execution', 'risk', 'logic', 'config', 'research')),
  title text not null,
  why text not null,
  steps jsonb not null,
  evidence jsonb not null,
  -- The operation with its input that does what it says.
  action jsonb,
  status text not null check (status in ('open', 'accepted', 'declined')),
  created_at timestamptz not null,
  expires_at timestamptz,
  unique (strategy_id, subject)
);

-- Files that runs have made. Their bytes are in the tables of files, which delete them by age.
create table strategy_file (
  file_id uuid primary key references file (id) on delete cascade,
  strategy_id uuid not null references strategy (id),
  execution_id uuid,
  path text not null,
  size integer not null check (size > 0),
  created_at timestamptz not null
);
create index strategy_file_of_strategy on strategy_file (strategy_id, file_id desc);
