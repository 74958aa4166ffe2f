-- Spending limits, what counts against them, and kill switches.

-- Limits that a user has set below those of the platform. Null keeps the platform's limit.
create table policy (
  user_id uuid primary key,
  version integer not null default 0,
  per_transaction_micros bigint check (per_transaction_micros >= 0),
  per_day_micros bigint check (per_day_micros >= 0),
  -- Only these are allowed.
  chains text[],
  tokens text[],
  recipients text[],
  updated_at timestamptz not null
);

-- Serialises everything that counts against the limits of a user: a later statement sees what the others spent. One
-- statement, so that nothing of the same round trip can overtake it.
create function policy_lock(p_user uuid, p_at timestamptz) returns void language plpgsql as $$
begin
  perform 1 from policy where user_id = p_user for update;
  if found then return; end if;
  insert into policy (user_id, updated_at) values (p_user, p_at) on conflict do nothing;
  perform 1 from policy where user_id = p_user for update;
end $$;

-- What each task reserves of the user's limits, in millionths of a dollar.
create table policy_spend (
  task_id uuid primary key,
  user_id uuid not null,
  usd_micros bigint not null check (usd_micros >= 0),
  -- Signed so far. A task that signs beyond its reservation reserves more first.
  authorized_micros bigint not null default 0 check (authorized_micros between 0 and usd_micros),
  state text not null check (state in ('reserved', 'released')),
  at timestamptz not null
);
create index policy_spend_age on policy_spend (at);
create index policy_spend_recent on policy_spend (user_id, at) include (usd_micros) where state = 'reserved';

-- Sums of the reserved spend by minute: a day of orders is read as a few sums and not as a row per order.
create table policy_spend_minute (
  user_id uuid not null,
  minute timestamptz not null,
  usd_micros bigint not null,
  primary key (user_id, minute)
-- The row of the present minute is updated by each order of the user.
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
create index policy_spend_minute_age on policy_spend_minute (minute);

create function policy_spend_minute_add(p_user uuid, p_at timestamptz, p_micros bigint)
returns void language plpgsql as $$
begin
  if p_micros = 0 then return; end if;
  insert into policy_spend_minute as m (user_id, minute, usd_micros)
    values (p_user, date_trunc('minute', p_at), p_micros)
    on conflict (user_id, minute) do update set usd_micros = m.usd_micros + excluded.usd_micros;
end $$;

create function policy_spend_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE'
      and (old.user_id, old.at, old.usd_micros, old.state) = (new.user_id, new.at, new.usd_micros, new.state) then
    return null;
  end if;
  if tg_op <> 'INSERT' and old.state = 'reserved' then
    perform policy_spend_minute_add(old.user_id, old.at, -old.usd_micros);
  end if;
  if new.state = 'reserved' then
    perform policy_spend_minute_add(new.user_id, new.at, new.usd_micros);
  end if;
  return null;
end $$;
-- A row is deleted when it counts no more, so that deletion changes no sum.
create trigger policy_spend_counted after insert or update of usd_micros, state, at, user_id on policy_spend
  for each row execute function policy_spend_counted();

-- Kill switches that are on.
create table kill_switch (
  -- All users, one user, or one user at one venue.
  scope text not null check (scope in ('global', 'user', 'venue')),
  -- Empty, the user's id, or '<user id>:<venue>'.
  subject text not null,
  since timestamptz not null,
  set_by text not null,
  reason text,
  primary key (scope, subject)
);
