-- The installation: what this database is bound to, which instances run on it, and when maintenance ran.

-- Facts that bind the database to something outside it, such as the local world that its tasks and nonces are about.
create table database_binding (
  key text primary key,
  value text not null
);

-- Gateway processes, each with its lease. The first instance that finds a lease expired deletes the row and frees the
-- tasks of that instance.
create table instance (
  id uuid primary key,
  started_at timestamptz not null,
  lease_until timestamptz not null
) with (fillfactor = 50);

-- Jobs that one instance runs for all of them, such as retention and the ledger audit: the last run of each.
create table maintenance_run (
  name text primary key,
  -- Fencing token, raised with each claim: an earlier run neither renews the lease nor ends the run.
  run bigint not null,
  -- The instance that claimed the run.
  owner uuid not null,
  started_at timestamptz not null,
  -- Renewed after each batch. Null once the run has ended; in the past where another instance may take it over.
  lease_until timestamptz,
  -- When the last run that did all its work ended.
  ended_at timestamptz
);

-- How far a job has come that passes over all rows of a table once, or once a day.
create table maintenance_position (
  name text primary key,
  -- The key after which it goes on; empty where the pass has ended.
  position text not null,
  at timestamptz not null default clock_timestamp()
);
