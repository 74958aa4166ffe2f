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

-- Adds what a statement has changed of the reserved spend to the sums.
create function policy_spend_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into policy_spend_minute as m (user_id, minute, usd_micros)
      select user_id, date_trunc('minute', at), sum(usd_micros) from added where state = 'reserved'
        group by 1, 2 having sum(usd_micros) <> 0 order by 1, 2
      on conflict (user_id, minute) do update set usd_micros = m.usd_micros + excluded.usd_micros;
  else
    insert into policy_spend_minute as m (user_id, minute, usd_micros)
      select user_id, date_trunc('minute', at), sum(micros) from (
        select user_id, at, usd_micros as micros from added where state = 'reserved'
        union all select user_id, at, -usd_micros from removed where state = 'reserved') changed
        group by 1, 2 having sum(micros) <> 0 order by 1, 2
      on conflict (user_id, minute) do update set usd_micros = m.usd_micros + excluded.usd_micros;
  end if;
  return null;
end $$;
-- A row is deleted when it counts no more, so that deletion changes no sum.
create trigger policy_spend_added after insert on policy_spend
  referencing new table as added for each statement execute function policy_spend_counted();
create trigger policy_spend_changed after update on policy_spend
  referencing old table as removed new table as added for each statement execute function policy_spend_counted();
-- What counts against the cap of a day that began at p_since: whole minutes as sums, and the rows of the first minute.
create function policy_spent(p_user uuid, p_since timestamptz) returns numeric language sql stable as $$
  select (select coalesce(sum(usd_micros), 0) from policy_spend_minute where user_id = p_user and minute > p_since)
    + (select coalesce(sum(usd_micros), 0) from policy_spend
      where user_id = p_user and state = 'reserved' and at > p_since
        and at < date_trunc('minute', p_since) + interval '1 minute')
$$;

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

-- The promises whose grant no longer holds, under the locks of the limits of their users: the limits changed, a switch
-- is on, or others were counted meanwhile and the day has too little left. Nothing of this stops an exit.
create function policy_refused(p_all task_promise[]) returns integer[] language plpgsql as $$
declare
  v_refused integer[];
  v_users uuid[] := array(select x.user_id from unnest(p_all) x where not x.is_exit);
begin
  insert into policy (user_id, updated_at)
    select x.user_id, x.created_at from unnest(p_all) x
      where not x.is_exit and not exists (select 1 from policy p where p.user_id = x.user_id)
      order by x.user_id
    on conflict do nothing;
  perform 1 from policy where user_id = any(v_users) order by user_id for update;
  select array_agg(x.n) into v_refused from unnest(p_all) x join policy l on l.user_id = x.user_id
    where l.user_id = any(v_users) and not x.is_exit and (
      l.version <> x.policy_version
      or exists (select 1 from kill_switch k where (k.scope = 'global' and k.subject = '')
        or (k.scope = 'user' and k.subject = x.user_id::text)
        or (k.scope = 'venue' and k.subject = x.user_id || ':' || x.policy_chain and not x.is_exempt))
      or (x.counted > 0 and x.counted + policy_spent(x.user_id, x.created_at - interval '24 hours') > x.per_day));
  return v_refused;
end $$;
