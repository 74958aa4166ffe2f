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
  -- What shows it, such as nonces, tasks and users; by signer, `to` is the nonce that the chain expects.
  detail jsonb not null default '{}',
  -- The last moment that the database knows; null where it is not known.
  point timestamptz,
  -- When an instance had compared everything that the chains did since; null until then, and to have it done again.
  compared_at timestamptz
);

-- What the chains did for accounts of ours since that moment and the database does not know. Adoption makes a task of
-- each, or ends the order that it belongs to.
create table found_execution (
  chain text not null,
  -- Of the request or of the order; a repeat has the same.
  execution_id uuid not null,
  sequence integer not null,
  user_id uuid not null,
  tx_hash text not null,
  -- Net changes of the user's wallet, as tasks show them.
  balance_changes jsonb not null default '[]',
  executed_at timestamptz not null,
  adopted_at timestamptz,
  -- The task that shows it to its user.
  task_id uuid,
  primary key (chain, execution_id, sequence)
);
