-- Addresses of others that a user may send to. A person adds one, and it counts from its time on.
create table transfer_recipient (
  recipient_id uuid primary key,
  user_id uuid not null,
  chain_id text not null,
  -- On an EVM chain with its checksum.
  address text not null,
  label text not null,
  -- Whether agents may send to it, or only a person who has just signed in.
  agents text not null check (agents in ('denied', 'allowed')),
  added_by text not null,
  created_at timestamptz not null,
  effective_at timestamptz not null,
  unique (user_id, chain_id, address)
);
