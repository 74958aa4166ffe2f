-- What counts against a cap, added up by the minute: a day of orders is then read as a few sums and not as a row for
-- each order. The trigger keeps it true for instances of the version before as well; those take the rows of a user in
-- another order, so that orders of one user on both versions can wait for each other until one of them is given up.

create table policy_spend_minute (
  user_id uuid not null,
  minute timestamptz not null,
  usd_micros bigint not null,
  primary key (user_id, minute)
) with (fillfactor = 70);

create function policy_spend_minute_add(p_user uuid, p_at timestamptz, p_micros bigint) returns void language plpgsql as $$
begin
  if p_micros = 0 then return; end if;
  insert into policy_spend_minute as m (user_id, minute, usd_micros) values (p_user, date_trunc('minute', p_at), p_micros)
    on conflict (user_id, minute) do update set usd_micros = m.usd_micros + excluded.usd_micros;
end $$;

create function policy_spend_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and (old.user_id, old.at, old.usd_micros, old.state) = (new.user_id, new.at, new.usd_micros, new.state) then
    return null;
  end if;
  if tg_op <> 'INSERT' and old.state = 'reserved' then
    perform policy_spend_minute_add(old.user_id, old.at, -old.usd_micros);
  end if;
  if tg_op <> 'DELETE' and new.state = 'reserved' then
    perform policy_spend_minute_add(new.user_id, new.at, new.usd_micros);
  end if;
  return null;
end $$;

-- Nobody writes between the first count and the trigger.
lock table policy_spend in share row exclusive mode;
insert into policy_spend_minute (user_id, minute, usd_micros)
  select user_id, date_trunc('minute', at), sum(usd_micros) from policy_spend
    where state = 'reserved' and at > clock_timestamp() - interval '2 days' group by 1, 2;
create trigger policy_spend_counted after insert or delete or update of usd_micros, state, at, user_id on policy_spend
  for each row execute function policy_spend_counted();

-- Whatever counts against the caps of a user waits here for whatever else does; what comes after it sees what the
-- others did. In one statement, so that nothing of the same round trip can overtake it.
create function policy_lock(p_user uuid, p_at timestamptz) returns void language plpgsql as $$
begin
  perform 1 from policy where user_id = p_user for update;
  if found then return; end if;
  insert into policy (user_id, updated_at) values (p_user, p_at) on conflict do nothing;
  perform 1 from policy where user_id = p_user for update;
end $$;
