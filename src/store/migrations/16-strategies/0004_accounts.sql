-- What strategies have, decide and trade: on paper by simulation, live by the fills of their own orders.

-- One account for each mode. Every change locks the row, so the steps of runs and the watch take turns.
create table strategy_account (
  id uuid primary key,
  strategy_id uuid not null references strategy (id),
  mode text not null check (mode in ('paper', 'live')),
  user_id uuid not null,
  -- The version whose markets, guards and exits the account follows: the one that opened what is open.
  version integer not null,
  -- Cash, positions, guards and waiting orders.
  state jsonb not null,
  -- Up to where prices (paper) or fills (live) have been applied.
  cursor jsonb not null,
  -- When the watch looks at it next; null while nothing is open and nothing waits.
  watch_at timestamptz,
  opened_at timestamptz not null,
  updated_at timestamptz not null,
  -- How its entries and trades differ from a backtest of the same time; null before the first comparison.
  drift jsonb,
  unique (strategy_id, mode)
);
create index strategy_account_watch on strategy_account (watch_at) where watch_at is not null;

-- What a run decided, with the arguments from which anybody can decide it again.
create table strategy_decision (
  execution_id uuid not null,
  -- Counts the decisions of the run from 1; a run that closes a position decides until nothing is left.
  seq integer not null check (seq > 0),
  strategy_id uuid not null,
  -- The close, or the moment, that it was decided at.
  at timestamptz not null,
  -- The exact text of the decision, whose bytes are the same in every mode.
  decision text not null,
  inputs_sha256 text not null,
  -- The configuration and the state, and the end and length of the window of each asset, whose candles never change.
  inputs jsonb not null,
  primary key (execution_id, seq)
);
create index strategy_decision_of_strategy on strategy_decision (strategy_id, at);

-- What filled, in both modes: lists, curves and trades are made from it.
create table strategy_fill (
  strategy_id uuid not null,
  mode text not null check (mode in ('paper', 'live')),
  -- Live the trade id of the venue, on paper a count.
  fill_id bigint not null,
  -- The run whose decision it carries out; of a stop or target, the run that placed it.
  execution_id uuid,
  asset text not null,
  is_buy boolean not null,
  size numeric not null check (size > 0),
  price numeric not null check (price > 0),
  fee_usd numeric not null,
  -- What it has realised after fees and funding; null for an entry.
  realized_pnl_usd numeric,
  -- A code: the reason of the decision, or stop, target, liquidation, by_hand.
  reason text not null,
  is_exit boolean not null,
  at timestamptz not null,
  primary key (strategy_id, mode, fill_id)
);
create index strategy_fill_by_time on strategy_fill (strategy_id, mode, at);
-- What a run has spent and realised.
create index strategy_fill_of_execution on strategy_fill (execution_id) where execution_id is not null;

-- The worth of an account over time, at most one row for each 15 minutes while something is open, and one for each run.
create table strategy_equity (
  strategy_id uuid not null,
  mode text not null check (mode in ('paper', 'live')),
  at timestamptz not null,
  equity_usd numeric not null,
  primary key (strategy_id, mode, at)
);

-- Perpetual positions net for an account, so one live strategy alone trades a market of it.
create table strategy_asset (
  user_id uuid not null,
  market text not null,
  strategy_id uuid not null references strategy (id),
  primary key (user_id, market)
);
create index strategy_asset_of_strategy on strategy_asset (strategy_id);

alter table strategy_execution drop constraint strategy_execution_execution_type_check;
alter table strategy_execution add constraint strategy_execution_execution_type_check
  check (execution_type in ('scheduled', 'catch_up', 'manual', 'exit', 'paper', 'backtest'));
-- One exit at a time closes what a strategy has open on paper, and one what it has open live.
create unique index strategy_execution_exit on strategy_execution (strategy_id, mode)
  where execution_type = 'exit' and status in ('pending', 'running');
