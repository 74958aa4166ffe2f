-- Gas: what sponsors pay for users, and sponsors that are paused.

-- What the sponsors pay for each user, chain and day (UTC), in wei: final charges and reservations.
create table sponsor_day (
  user_id uuid not null,
  chain_id text not null,
  day date not null,
  wei numeric(78, 0) not null,
  primary key (user_id, chain_id, day)
);
create index sponsor_day_age on sponsor_day (day);

-- What each task adds to the day of its user. Reserved at acceptance by what the transaction may cost, corrected to
-- what it did cost.
create table sponsor_charge (
  task_id uuid primary key,
  user_id uuid not null,
  chain_id text not null,
  day date not null,
  wei numeric(78, 0) not null,
  is_final boolean not null default false
);
create index sponsor_charge_age on sponsor_charge (day) where is_final;

-- The promises whose charge the budget of the day does not cover, with what is used of it, under the locks of the days.
create function sponsor_refused(p_all task_promise[]) returns jsonb language plpgsql as $$
declare
  v_used jsonb;
  v_users uuid[] := array(select x.user_id from unnest(p_all) x where x.gas_wei is not null);
begin
  insert into sponsor_day (user_id, chain_id, day, wei)
    select x.user_id, x.gas_chain, x.gas_day, 0 from unnest(p_all) x
      where x.gas_wei is not null and not exists (select 1 from sponsor_day d
        where d.user_id = x.user_id and d.chain_id = x.gas_chain and d.day = x.gas_day)
      order by x.user_id, x.gas_chain, x.gas_day
    on conflict do nothing;
  perform 1 from unnest(p_all) x
    join sponsor_day d on d.user_id = x.user_id and d.chain_id = x.gas_chain and d.day = x.gas_day
    where d.user_id = any(v_users) order by d.user_id, d.chain_id, d.day for update of d;
  select jsonb_object_agg(x.n, d.wei::text) into v_used from unnest(p_all) x
    join sponsor_day d on d.user_id = x.user_id and d.chain_id = x.gas_chain and d.day = x.gas_day
    where d.user_id = any(v_users) and d.wei + x.gas_wei > x.gas_budget;
  return v_used;
end $$;

-- Replaces the reservation of a task by its cost, once.
create function sponsor_settle(p_task uuid, p_wei numeric) returns void language plpgsql as $$
declare
  v_charge sponsor_charge;
begin
  select * into v_charge from sponsor_charge where task_id = p_task and not is_final for update;
  if not found then return; end if;
  update sponsor_charge set wei = p_wei, is_final = true where task_id = p_task;
  update sponsor_day set wei = greatest(wei + p_wei - v_charge.wei, 0)
    where user_id = v_charge.user_id and chain_id = v_charge.chain_id and day = v_charge.day;
end $$;

-- Sponsors that an operator has paused. They pay for no new transaction; those in flight are still confirmed or
-- replaced.
create table paused_sponsor (
  chain text not null,
  signer text not null,
  since timestamptz not null,
  set_by text not null,
  reason text not null,
  primary key (chain, signer)
);
