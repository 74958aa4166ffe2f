-- Lots of shares in a vault, and what a share was worth. How many shares a lot has stands in the ledger. Forward only.

create table earn_position (
  id uuid primary key,
  user_id uuid not null references app_user (id),
  chain_id text not null,
  vault text not null,
  number integer not null check (number > 0),
  created_at timestamptz not null,
  unique (user_id, chain_id, vault, number)
);

-- `at` is the time of the block: the price belongs to it, not to the moment of asking.
create table share_price (
  chain_id text not null,
  vault text not null,
  at timestamptz not null,
  block bigint not null,
  price numeric not null check (price > 0),
  primary key (chain_id, vault, at)
);
