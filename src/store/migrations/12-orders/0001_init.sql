-- What users have paid for the tokens that they hold, from their own swaps: the anchor of stops and profits.
create table cost_basis (
  user_id uuid not null references app_user (id),
  chain_id text not null,
  -- EVM addresses in lower case.
  token text not null,
  -- What was bought and not sold since; tokens that came otherwise do not count.
  units numeric(78, 0) not null check (units >= 0),
  -- What these units cost, in units of 1e-18 dollars.
  cost numeric(78, 0) not null check (cost >= 0),
  -- What sales of such units brought beyond their cost; null before the first one.
  realized numeric,
  updated_at timestamptz not null,
  primary key (user_id, chain_id, token)
) with (fillfactor = 80);
