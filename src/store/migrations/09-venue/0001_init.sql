-- Trading venues: agent keys, orders, and the record of each account, which is reconciled with the venue.

-- Keys that trade for a user at a venue, in envelope encryption. A key is approved once, and is never used again after
-- the venue has forgotten it.
create table agent_wallet (
  id uuid primary key,
  user_id uuid not null references app_user (id),
  venue text not null,
  address text not null,
  -- The private key, encrypted with the data key.
  ciphertext bytea not null,
  -- The data key, wrapped with the key-encryption key kek_id.
  wrapped_dek bytea not null,
  kek_id text not null,
  -- Format of the encryption.
  version integer not null,
  created_at timestamptz not null,
  approved_at timestamptz,
  expires_at timestamptz,
  retired_at timestamptz,
  -- The account of the user was added to venue_account.
  is_registered boolean not null default false,
  unique (venue, address)
);
-- One key in use and one awaiting approval.
create unique index agent_wallet_current on agent_wallet (user_id, venue)
  where approved_at is not null and retired_at is null;
create unique index agent_wallet_pending on agent_wallet (user_id, venue)
  where approved_at is null and retired_at is null;
create index agent_wallet_of_user on agent_wallet (user_id, venue) where retired_at is null;
create index agent_wallet_of_kek on agent_wallet (kek_id, id);
-- Keys in use, by when they expire; and those whose account is not yet added.
create index agent_wallet_expiry on agent_wallet (venue, expires_at)
  where approved_at is not null and retired_at is null;
create index agent_wallet_unregistered on agent_wallet (venue)
  where approved_at is not null and retired_at is null and not is_registered;

-- Orders that tasks have sent, written in the commit that signs them.
create table venue_order (
  -- Client order id.
  cloid text primary key,
  venue text not null,
  user_id uuid not null,
  task_id uuid not null,
  -- The order's role in its task: entry, close, tp or sl.
  leg text not null,
  symbol text not null,
  market text not null check (market in ('perp', 'spot')),
  is_buy boolean,
  size numeric,
  price numeric,
  trigger_price numeric,
  reduce_only boolean,
  at timestamptz not null,
  -- How the order ended.
  status text,
  ended_at timestamptz
);
-- Histories by section, newest first: all markets, and one of them.
create index venue_order_of_user on venue_order (user_id, venue, market, at, cloid);
create index venue_order_of_symbol on venue_order (user_id, venue, market, symbol, at, cloid);
create index venue_order_open on venue_order (user_id, venue, at) where ended_at is null;
create index venue_order_recent on venue_order (venue, at);

-- The leverage that a user set for a market through the gateway: the default of later orders there.
create table venue_leverage (
  user_id uuid not null references app_user (id),
  venue text not null,
  symbol text not null,
  is_cross boolean not null,
  leverage integer not null check (leverage > 0),
  set_at timestamptz not null,
  primary key (user_id, venue, symbol)
);

-- Accounts at a venue and their reconciliation. All times in milliseconds are of the venue's clock.
create table venue_account (
  user_id uuid not null references app_user (id),
  venue text not null,
  -- Address at the venue.
  account text not null,
  -- `new` has no baseline yet. An operator sets `unfreezing`, and the next check makes it `active` with a new baseline.
  state text not null default 'new' check (state in ('new', 'active', 'frozen', 'unfreezing')),
  -- Why the account is frozen, since when, and which operator ends that.
  reason text,
  frozen_since timestamptz,
  unfrozen_by text,
  -- Whether cash and tokens are compared: a unified account has one balance for both.
  checks_balances boolean not null default true,
  -- Time of the baseline: what came after it explains every change of a balance.
  baseline_at_ms bigint not null default 0,
  -- Up to here every change is explained.
  reconciled_through_ms bigint not null default 0,
  -- A difference between record and venue. It counts only when it is still the same after a while.
  mismatch text,
  mismatch_since timestamptz,
  -- Last activity, which decides how often the account is checked.
  active_at timestamptz not null,
  checked_at timestamptz,
  -- When the next check is due.
  next_at timestamptz not null,
  -- The instance that reconciles the account.
  owner uuid,
  lease_until timestamptz,
  primary key (user_id, venue),
  unique (venue, account)
);
create index venue_account_due on venue_account (venue, next_at);
create index venue_account_frozen on venue_account (venue) where state = 'frozen';

-- Balances at the baseline.
create table venue_baseline (
  user_id uuid not null,
  venue text not null,
  -- `cash`, `position:<market>` or `spot:<token>`.
  balance_key text not null,
  amount numeric not null,
  primary key (user_id, venue, balance_key)
);

-- Fills of the account, also of orders of other clients.
create table venue_fill (
  user_id uuid not null,
  venue text not null,
  trade_id bigint not null,
  order_id bigint not null,
  cloid text,
  symbol text not null,
  -- Tokens of a spot market; null for perpetuals, which move cash only.
  base text,
  quote text,
  -- Negative for a sale.
  signed_size numeric not null,
  price numeric not null,
  fee numeric not null,
  fee_token text not null,
  -- By the venue's count.
  realized_pnl numeric,
  cause text not null check (cause in ('order', 'liquidation', 'venue')),
  at_ms bigint not null,
  primary key (user_id, venue, trade_id)
);
create index venue_fill_by_time on venue_fill (user_id, venue, at_ms);
-- Histories by section, newest first: all markets, and one of them.
create index venue_fill_of_section on venue_fill (user_id, venue, (base is null), at_ms, trade_id);
create index venue_fill_of_symbol on venue_fill (user_id, venue, symbol, at_ms, trade_id);
create index venue_fill_of_liquidation on venue_fill (user_id, venue, order_id) where cause = 'liquidation';
create index venue_fill_of_order on venue_fill (cloid) where cloid is not null;

-- Every other change of a balance: funding, deposits, transfers, and adjustments with their reason.
create table venue_ledger_entry (
  user_id uuid not null,
  venue text not null,
  -- Idempotency key, built from what the venue says.
  key text not null,
  kind text not null,
  -- As in venue_baseline. Null where the effect of the change is not known.
  balance_key text,
  amount numeric,
  reason text,
  at_ms bigint not null,
  primary key (user_id, venue, key)
);
create index venue_ledger_entry_by_time on venue_ledger_entry (user_id, venue, at_ms);

-- Money that arrived at the venue or on a chain, by the task that claimed it: two tasks never count the same arrival.
create table claimed_transfer (
  venue text not null,
  -- The arrival, as the venue or chain identifies it.
  key text not null,
  user_id uuid not null,
  task_id uuid not null,
  at timestamptz not null,
  primary key (venue, key)
);
