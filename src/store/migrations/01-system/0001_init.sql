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

-- Jobs that one instance runs for all of them, such as retention and the ledger audit.
create table maintenance_run (
  name text primary key,
  -- The instance whose statement advances this time does the run.
  started_at timestamptz not null,
  -- Duration of the last run: the longer a job takes, the longer the pause before the next run.
  took_ms bigint not null default 0,
  -- When the last run that finished ended, and how many problems it found.
  ended_at timestamptz,
  problems integer not null default 0
);
