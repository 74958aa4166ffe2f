-- What the gateways know of the time of this database: whether it lost commits that one of them saw, and what waits
-- because of it.

-- The database under which gateways keep what they saw of it, outside of it. A copy that is restored keeps the id.
insert into database_binding (key, value)
  values ('database', gen_random_uuid()::text), ('time_generation', '0');

-- Gateways by their data folder: each heartbeat adds one. A gateway that remembers more than its row shows has seen
-- commits that the database no longer has, whatever the server says about itself.
create table database_witness (
  id uuid primary key,
  beat bigint not null,
  -- Of the server at that heartbeat; null where it shows none.
  timeline integer,
  lsn pg_lsn,
  seen_at timestamptz not null
) with (fillfactor = 50);

-- Why money waits: nothing is accepted, signed or fired. A row ends with the operator's `time resume`.
create table money_hold (
  -- A chain id, or 'all'.
  scope text primary key,
  reason text not null,
  since timestamptz not null,
  -- What shows it, such as nonces, tasks and users.
  detail jsonb not null default '{}'
);
