-- Prediction markets: accounts, keys, orders, fills, exits, redemptions and rate budgets.

-- One account of a user at a venue: the owner's own wallet, and the wallet that has the money.
create table prediction_account (
  user_id uuid not null references app_user (id),
  venue text not null,
  owner_address text not null,
  wallet_address text not null,
  wallet_kind text not null check (wallet_kind in ('deposit_wallet', 'safe', 'eoa')),
  -- When the chain first showed every step of the set-up as done, by protocol.
  v1_ready_at timestamptz,
  v2_ready_at timestamptz,
  -- The task whose relayer action is in flight: a wallet runs one at a time.
  relayer_task_id uuid,
  -- Until when a step of the set-up waits for a quota of the venue.
  waiting_until timestamptz,
  -- Up to which time the venue's trades of the account are recorded.
  trades_through timestamptz,
  -- When orders, trades and exits are compared with the venue next; null while nothing is open.
  sync_at timestamptz,
  created_at timestamptz not null,
  primary key (user_id, venue),
  unique (venue, wallet_address)
);
create index prediction_account_due on prediction_account (venue, sync_at) where sync_at is not null;

-- Keys with which an owner's requests are signed at a venue, in envelope encryption.
create table prediction_key (
  id uuid primary key,
  user_id uuid not null references app_user (id),
  venue text not null,
  owner_address text not null,
  -- Key, secret and passphrase, encrypted with the data key.
  ciphertext bytea not null,
  -- The data key, wrapped with the key-encryption key kek_id.
  wrapped_dek bytea not null,
  kek_id text not null,
  created_at timestamptz not null,
  -- When the key was revoked; a revoked key is never used again.
  revoked_at timestamptz
);
create unique index prediction_key_current on prediction_key (user_id, venue, owner_address)
  where revoked_at is null;
create index prediction_key_of_kek on prediction_key (kek_id, id);

-- Orders that tasks have signed, written in the commit that signs them.
create table prediction_order (
  -- Hash of the signed order, which is its id at the venue.
  order_id text primary key,
  user_id uuid not null,
  venue text not null,
  task_id uuid not null,
  -- order, tp or sl.
  leg text not null check (leg in ('order', 'tp', 'sl')),
  market_id text not null,
  outcome_id text not null,
  outcome text not null,
  title text not null,
  protocol text not null,
  neg_risk boolean not null,
  side text not null check (side in ('buy', 'sell')),
  order_type text not null check (order_type in ('gtc', 'gtd', 'fok', 'fak')),
  -- Micro-dollars for one share.
  price bigint not null,
  -- Shares and dollars in units of 6 decimals.
  size numeric(40) not null,
  making numeric(40) not null,
  taking numeric(40) not null,
  matched numeric(40) not null default 0,
  -- The fee of a taker, as the market stated it when the order was signed; null without a fee.
  fee jsonb,
  -- signed is not known to be at the venue; every state after live, matched and delayed is an end.
  status text not null check (status in
    ('signed', 'live', 'delayed', 'matched', 'cancelled', 'expired', 'unmatched', 'rejected', 'resolved')),
  -- Whether the order rests after its task has ended, and so locks cash or shares by itself.
  rests boolean not null default false,
  expires_at timestamptz,
  at timestamptz not null,
  ended_at timestamptz
);
create index prediction_order_open on prediction_order (user_id, venue, at) where ended_at is null;
create index prediction_order_of_task on prediction_order (task_id);

-- The account's own leg of each trade. Only confirmed is money or shares.
create table prediction_fill (
  trade_id text not null,
  order_id text not null,
  user_id uuid not null,
  venue text not null,
  market_id text not null,
  outcome_id text not null,
  outcome text not null,
  title text not null,
  protocol text not null,
  side text not null check (side in ('buy', 'sell')),
  role text not null check (role in ('maker', 'taker')),
  price bigint not null,
  size numeric(40) not null,
  -- Dollars without the fee, in units of 6 decimals; rounded up for a purchase and down for a sale.
  cash numeric(40) not null,
  fee numeric(40) not null,
  settlement text not null check (settlement in
    ('matched_not_broadcasted', 'matched', 'mined', 'confirmed', 'retrying', 'failed')),
  tx_hash text,
  matched_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (user_id, venue, trade_id, order_id)
);
create index prediction_fill_by_time on prediction_fill (user_id, venue, matched_at desc, trade_id);
create index prediction_fill_of_order on prediction_fill (order_id);
create index prediction_fill_unsettled on prediction_fill (user_id, venue)
  where settlement not in ('confirmed', 'failed');

-- Take-profits and stop-losses. Those of one entry are a pair: the first that fills ends the other.
create table prediction_exit (
  id uuid primary key,
  user_id uuid not null,
  venue text not null,
  -- The task whose purchase they protect.
  entry_task_id uuid not null,
  entry_order_id text not null,
  leg text not null check (leg in ('tp', 'sl')),
  market_id text not null,
  outcome_id text not null,
  -- Micro-dollars for one share; null until the average price of a percentage is known.
  trigger_price bigint,
  -- Hundredths of a basis point above the average price; null for an absolute price.
  trigger_percentage numeric(40),
  -- waiting: the shares are not settled; resting: in the book; watched: by the gateway; executing: a task sells.
  state text not null check (state in
    ('waiting', 'resting', 'watched', 'executing', 'filled', 'cancelled', 'failed')),
  order_id text,
  exit_task_id uuid,
  error text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (entry_task_id, leg)
);
create index prediction_exit_open on prediction_exit (user_id, venue)
  where state in ('waiting', 'resting', 'watched', 'executing');
create index prediction_exit_watched on prediction_exit (venue, outcome_id) where state = 'watched';

-- Payouts of resolved markets, by the gateway or by the venue itself, as the receipt of each transaction shows them.
create table prediction_redemption (
  user_id uuid not null,
  venue text not null,
  market_id text not null,
  outcome_id text not null,
  title text not null,
  shares numeric(40) not null,
  payout numeric(40) not null,
  -- In lower case.
  tx_hash text not null,
  redeemed_by text not null check (redeemed_by in ('us', 'venue')),
  -- The task that reports it; null while none has.
  task_id uuid,
  at timestamptz not null,
  primary key (user_id, venue, market_id, outcome_id, tx_hash)
);
create index prediction_redemption_by_time on prediction_redemption (user_id, venue, at desc);

-- Money between the user's wallets and the funded wallet.
create table prediction_transfer (
  task_id uuid primary key,
  user_id uuid not null,
  venue text not null,
  type text not null check (type in ('deposit', 'withdrawal')),
  amount numeric(40) not null,
  tx_hash text,
  at timestamptz not null
);
create index prediction_transfer_by_time on prediction_transfer (user_id, venue, at desc);

-- What the venue said last of a signer's budget. Orders that spend leave a part to cancels and exits.
create table prediction_rate_budget (
  venue text not null,
  signer text not null,
  remaining integer,
  reset_at timestamptz,
  -- The venue refused the signer until then.
  blocked_until timestamptz,
  updated_at timestamptz not null,
  primary key (venue, signer)
);

-- Quotes that an order may name until they expire.
create table prediction_quote (
  id uuid primary key,
  user_id uuid not null,
  venue text not null,
  outcome_id text not null,
  side text not null check (side in ('buy', 'sell')),
  worst_price bigint not null,
  size numeric(40) not null,
  all_in numeric(40) not null,
  expires_at timestamptz not null
);
create index prediction_quote_expiry on prediction_quote (expires_at);

-- The version of the text that a user acknowledged.
alter table app_user add column disclaimer_version text;
