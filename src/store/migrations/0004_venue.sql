-- Keys that trade for a user at a venue, and what the house knows of its orders and credits there. Forward only.

-- A key is made for one user and venue, approved once, and never used again after the venue has forgotten it.
create table agent_wallet (
  id uuid primary key,
  user_id uuid not null references app_user (id),
  venue text not null,
  address text not null,
  ciphertext bytea not null,
  wrapped_dek bytea not null,
  kek_id text not null,
  version integer not null,
  created_at timestamptz not null,
  approved_at timestamptz,
  expires_at timestamptz,
  retired_at timestamptz,
  unique (venue, address)
);
create unique index agent_wallet_current on agent_wallet (user_id, venue)
  where approved_at is not null and retired_at is null;
create unique index agent_wallet_waiting on agent_wallet (user_id, venue)
  where approved_at is null and retired_at is null;
create index agent_wallet_of_kek on agent_wallet (kek_id, id);

-- Which task an order at the venue belongs to; written in the commit that signs it.
create table venue_order (
  cloid text primary key,
  venue text not null,
  user_id uuid not null,
  task_id uuid not null,
  leg text not null,
  symbol text not null,
  at timestamptz not null
);
create index venue_order_of_user on venue_order (user_id, venue, at);

-- Money that arrived, at the venue or on a chain, belongs to one task: two of the same amount are never one.
create table venue_credit (
  venue text not null,
  key text not null,
  user_id uuid not null,
  task_id uuid not null,
  at timestamptz not null,
  primary key (venue, key)
);
