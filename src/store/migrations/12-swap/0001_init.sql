-- Bound quotes of swaps.

create table swap_quote (
  id uuid primary key,
  user_id uuid not null references app_user (id),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- What a request that executes the quote has to repeat.
  request jsonb not null,
  -- The route as its provider proposed it; it is checked again where it is executed.
  route jsonb not null
);
create index swap_quote_of_user on swap_quote (user_id, created_at desc);
create index swap_quote_by_age on swap_quote (expires_at);

-- The first task of a quote: a provider takes one deposit per request.
create table swap_quote_use (
  quote_id uuid primary key,
  -- Drawn by the admission of the task and stored in its data.
  claim uuid not null,
  at timestamptz not null
);
create index swap_quote_use_by_age on swap_quote_use (at);

-- Transactions of others that paid an account: each ends one swap, or is a payout of the venue.
create table claimed_arrival (
  chain_id text not null,
  -- Hashes and addresses of EVM chains in lower case.
  tx_hash text not null,
  account text not null,
  -- The payment of the transaction: the index of its event, or the token where only the sum is known.
  part text not null,
  -- The task of the swap that it ended, or 'venue_payouts'.
  claimant text not null,
  at timestamptz not null,
  primary key (chain_id, tx_hash, account, part)
);
create index claimed_arrival_by_age on claimed_arrival (at);
