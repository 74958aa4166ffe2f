-- What the house believes of an account at a venue, so that it can be held against what the venue says. Forward only.

-- A switch for one user at one venue, set where the two disagree; it tells why.
alter table kill_switch drop constraint kill_switch_scope_check;
alter table kill_switch add constraint kill_switch_scope_check check (scope in ('global', 'user', 'venue'));
alter table kill_switch add column reason text;

create table venue_account (
  user_id uuid not null references app_user (id),
  venue text not null,
  account text not null,
  -- `new` has no baseline yet; an operator sets `lifting`, and the next look makes it `active` with a new one.
  state text not null default 'new' check (state in ('new', 'active', 'frozen', 'lifting')),
  -- Whether cash and tokens are compared: with one balance for both sides they are not told apart.
  balances boolean not null default true,
  -- The venue's clock: what came after the baseline explains every change; up to `agreed_ms` everything was explained.
  baseline_ms bigint not null default 0,
  agreed_ms bigint not null default 0,
  -- A difference counts only when it is still the same after a while.
  suspicion text,
  suspected_at timestamptz,
  reason text,
  since timestamptz,
  lifted_by text,
  active_at timestamptz not null,
  checked_at timestamptz,
  next_at timestamptz not null,
  owner uuid,
  lease_until timestamptz,
  primary key (user_id, venue),
  unique (venue, account)
);
create index venue_account_due on venue_account (venue, next_at);
create index venue_account_frozen on venue_account (venue) where state = 'frozen';

-- `cash`, `position:<market>` or `spot:<token>`, as they were at the baseline.
create table venue_baseline (
  user_id uuid not null,
  venue text not null,
  place text not null,
  amount numeric not null,
  primary key (user_id, venue, place)
);

create table venue_fill (
  user_id uuid not null,
  venue text not null,
  trade_id bigint not null,
  order_id bigint not null,
  cloid text,
  symbol text not null,
  -- Null at both for perpetuals, which move cash and no token.
  base text,
  quote text,
  signed_size numeric not null,
  price numeric not null,
  fee numeric not null,
  fee_token text not null,
  cause text not null check (cause in ('order', 'liquidation', 'venue')),
  at_ms bigint not null,
  primary key (user_id, venue, trade_id)
);
create index venue_fill_by_time on venue_fill (user_id, venue, at_ms);
create index venue_fill_of_order on venue_fill (cloid) where cloid is not null;

-- Whatever else changes a balance: funding, deposits, transfers, and adjustments with their reason.
create table venue_change (
  user_id uuid not null,
  venue text not null,
  key text not null,
  kind text not null,
  -- Null where the venue told of a change whose effect is not known.
  place text,
  amount numeric,
  reason text,
  at_ms bigint not null,
  primary key (user_id, venue, key)
);
create index venue_change_by_time on venue_change (user_id, venue, at_ms);

create index venue_order_recent on venue_order (venue, at);
