-- Positions in vaults, their comparison with the chain, and share prices.

-- Lots of shares in a vault, each from the settlement of its first deposit on. The number of shares is in the ledger.
create table earn_position (
  id uuid primary key,
  user_id uuid not null references app_user (id),
  chain_id text not null,
  vault text not null,
  -- What the counted shares cost. A withdrawal takes its part along, rounded down.
  cost_units numeric(78, 0) not null default 0,
  -- Shares of the deposits less those of the withdrawals that were settled.
  counted_shares numeric(78, 0) not null default 0,
  created_at timestamptz not null
);
create index earn_position_of_user on earn_position (user_id, chain_id, vault, id desc);

-- Adds a settled deposit, the first of which opens the position, or subtracts a settled withdrawal, whose p_shares are
-- negative.
create function earn_position_add(
  p_id uuid, p_user uuid, p_chain text, p_vault text, p_assets numeric, p_shares numeric, p_created timestamptz)
returns void language sql as $$
  insert into earn_position as p (id, user_id, chain_id, vault, cost_units, counted_shares, created_at)
  values (p_id, p_user, p_chain, p_vault, p_assets, greatest(p_shares, 0), p_created)
  on conflict (id) do update set
    cost_units = case
      when p_shares >= 0 then p.cost_units + p_assets
      when p.counted_shares <= -p_shares then 0
      else p.cost_units - div(p.cost_units * -p_shares, p.counted_shares) end,
    counted_shares = greatest(p.counted_shares + p_shares, 0)
$$;

-- A user at a vault: the shares of the user's positions are compared with those that the chain shows, and a mismatch
-- that lasts freezes the account.
create table earn_account (
  user_id uuid not null references app_user (id),
  chain_id text not null,
  vault text not null,
  state text not null default 'active' check (state in ('active', 'frozen')),
  -- Highest block in which a deposit or withdrawal was settled: an older state of the chain proves nothing.
  settled_block bigint not null default 0,
  settled_at timestamptz,
  -- Raised with each booking of an external change, so that one difference is booked once.
  version bigint not null default 0,
  -- Shares on the chain less shares of the positions, as last compared. It counts once it is found again later.
  mismatch numeric,
  mismatch_since timestamptz,
  compared_at timestamptz,
  -- When the next comparison is due.
  next_at timestamptz not null,
  -- Why the account is frozen.
  reason text,
  frozen_since timestamptz,
  frozen_by text,
  unfrozen_by text,
  primary key (user_id, chain_id, vault)
);
create index earn_account_due on earn_account (chain_id, vault, next_at);
create index earn_account_frozen on earn_account (chain_id, vault) where state = 'frozen';

-- What a share of a vault was worth.
create table share_price (
  chain_id text not null,
  vault text not null,
  -- Time of the block, not of the query.
  at timestamptz not null,
  block bigint not null,
  price numeric not null check (price > 0),
  primary key (chain_id, vault, at)
);
