-- Units that the acceptance of a task holds from several accounts of its user: credits of several origins are spent in the
-- order in which they expire.

-- {"asset", "accounts": sub-accounts in the order of spending, "min", "max", "reason"}. A promise has a draw or a hold of one
-- account.
alter type task_promise add attribute draw jsonb;

-- What each promise takes of each of its accounts.
create type draw_part as (
  n integer,
  task_id uuid,
  account bigint,
  -- Its place in the order of spending.
  nth bigint,
  units numeric
);

create function draw_parts(p_all task_promise[]) returns setof draw_part language sql stable as $$
  select p.n, p.id, p.account, p.nth, least(p.avail, greatest(0, p.most - p.before)) from (
    select x.n, x.id, a.id as account, g.nth, a.avail, (x.draw ->> 'max')::numeric as most,
      coalesce(sum(a.avail) over (partition by x.n order by g.nth rows between unbounded preceding and 1 preceding), 0) as before
    from unnest(p_all) x cross join jsonb_array_elements_text(x.draw -> 'accounts') with ordinality g (sub_account, nth)
      join account a on a.owner = x.user_id and a.asset = x.draw ->> 'asset' and a.sub_account = g.sub_account) p
$$;

-- Locks the accounts of draws together with those of holds, so that all are locked in one order. Returns the units that are
-- available to each promise whose accounts have less than it needs, by its place.
create function draws_refused(p_all task_promise[]) returns jsonb language plpgsql as $$
begin
  perform ledger_lock(array(
    select a.id from unnest(p_all) x cross join jsonb_array_elements_text(x.draw -> 'accounts') g (sub_account)
      join account a on a.owner = x.user_id and a.asset = x.draw ->> 'asset' and a.sub_account = g.sub_account
    union select a.id from unnest(p_all) x
      join account a on a.owner = x.user_id and a.asset = x.asset and a.sub_account = x.sub_account));
  return (select jsonb_object_agg(x.n, coalesce(d.units, 0)) from unnest(p_all) x
    left join (select n, sum(units) as units from draw_parts(p_all) group by n) d on d.n = x.n
    where x.draw is not null and coalesce(d.units, 0) < (x.draw ->> 'min')::numeric);
end $$;

-- Holds what was drawn; each hold is a transfer of its own, which the end of the task posts or voids.
create function draws_hold(p_all task_promise[]) returns void language plpgsql as $$
declare
  v_parts draw_part[] := array(select d from draw_parts(p_all) d where d.units > 0);
begin
  update account a set avail = a.avail - d.units, held = a.held + d.units
    from unnest(v_parts) d where a.id = any(array(select account from unnest(v_parts))) and a.id = d.account;
  insert into transfer (debit, credit, key, amount, state, task_id, reason, at)
    select d.account, ledger_account(jsonb_build_object('owner', ledger_system(), 'asset', x.draw ->> 'asset',
        'subAccount', 'external'), x.shard), d.task_id || ':draw:' || d.nth, d.units, 'pending', d.task_id,
      x.draw ->> 'reason', x.created_at
    from unnest(v_parts) d join unnest(p_all) x on x.n = d.n order by d.n, d.nth;
end $$;

-- Accepts promises, each one whole or not at all, and none because of another. Returns a verdict about each: 'accepted'
-- with the number of its last event, or why it is refused: key_taken, policy, orders, gas, draw, stale or short. An array has at most
-- one promise of a user.
-- Locks come before decisions, and decisions before writes. They are taken in the order of every transaction: keys, tasks
-- by id, limits by user, gas by user, own accounts by id, external accounts by id, sums of limits by user, nonce
-- sequences, numbers of events by user. New rows of tasks are known to no other transaction.
create or replace function task_accept(p jsonb, p_wait_ms integer) returns table (n integer, verdict text, detail jsonb, last bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
as $$
#variable_conflict use_column
declare
  v_all task_promise[];
  v_given task_promise[];
  v_users uuid[];
  -- Whether any promise has such a part. One pass finds them all, because each statement costs more than its rows.
  v_has_key boolean;
  v_has_request boolean;
  v_has_entry boolean;
  v_has_gas boolean;
  v_has_hold boolean;
  v_has_draw boolean;
  v_has_spend boolean;
  v_has_signature boolean;
  v_has_rows boolean;
  v_has_orders boolean;
  v_out integer[];
  v_used jsonb;
  v_accounts ledger_reading[];
  v_table text;
begin
  perform wait_for_locks(p_wait_ms);
  select array_agg(x order by x.user_id, x.n), array_agg(x.user_id), bool_or(x.key is not null),
      bool_or(x.request_hash is not null), bool_or(not x.is_exit), bool_or(x.gas_wei is not null),
      bool_or(x.asset is not null), bool_or(x.counted is not null), bool_or(x.signed is not null), bool_or(x.rows is not null), bool_or(x.orders is not null), bool_or(x.draw is not null)
    into v_all, v_users, v_has_key, v_has_request, v_has_entry, v_has_gas, v_has_hold, v_has_spend, v_has_signature, v_has_rows,
      v_has_orders, v_has_draw
    from jsonb_populate_recordset(null::task_promise, p) x;
  v_given := v_all;

  -- Waits for the end of a transaction that has inserted the same key.
  if v_has_key then
    with free as (
      insert into idempotency (user_id, key, operation, body_hash, task_id, at)
        select x.user_id, x.key, x.operation, x.hash, x.id, x.created_at from unnest(v_all) x
          where x.key is not null order by x.user_id, x.key
        on conflict do nothing returning task_id)
    select array_agg(x.n) into v_out from unnest(v_all) x
      where x.key is not null and not exists (select 1 from free where task_id = x.id);
    if v_out is not null then
      return query select x, 'key_taken', null::jsonb, null::bigint from unnest(v_out) x;
      v_all := task_promises_without(v_all, v_out);
    end if;
  end if;

  if v_has_request then
    v_used := duplicates_of(v_all);
    if v_used is not null then
      return query select u.key::integer, 'duplicate', jsonb_build_object('task_id', u.value), null::bigint
        from jsonb_each_text(v_used) u;
      v_all := task_promises_without(v_all, array(select jsonb_object_keys(v_used)::integer));
    end if;
  end if;

  if v_has_entry then
    v_out := policy_refused(v_all);
    if v_out is not null then
      return query select x, 'policy', null::jsonb, null::bigint from unnest(v_out) x;
      v_all := task_promises_without(v_all, v_out);
    end if;
  end if;

  if v_has_orders then
    v_used := orders_refused(v_all);
    if v_used is not null then
      return query select u.key::integer, 'orders', jsonb_build_object('open', u.value), null::bigint
        from jsonb_each_text(v_used) u;
      v_all := task_promises_without(v_all, array(select jsonb_object_keys(v_used)::integer));
    end if;
  end if;

  if v_has_gas then
    v_used := sponsor_refused(v_all);
    if v_used is not null then
      return query select u.key::integer, 'gas', jsonb_build_object('used', u.value), null::bigint
        from jsonb_each_text(v_used) u;
      v_all := task_promises_without(v_all, array(select jsonb_object_keys(v_used)::integer));
    end if;
  end if;

  if v_has_draw then
    v_used := draws_refused(v_all);
    if v_used is not null then
      return query select u.key::integer, 'draw', jsonb_build_object('available', u.value), null::bigint
        from jsonb_each_text(v_used) u;
      v_all := task_promises_without(v_all, array(select jsonb_object_keys(v_used)::integer));
    end if;
  end if;

  if v_has_hold then
    v_accounts := task_read_accounts(v_all);
    select array_agg(r.n) into v_out from unnest(v_accounts) r where r.is_stale;
    if v_out is not null then
      return query select x, 'stale', null::jsonb, null::bigint from unnest(v_out) x;
      v_all := task_promises_without(v_all, v_out);
    end if;
    select array_agg(x.n) into v_out from unnest(v_all) x join unnest(v_accounts) r on r.n = x.n
      where x.amount > r.avail + r.delta;
    if v_out is not null then
      return query select x.n, 'short', jsonb_build_object('required', x.amount::text,
          'available', (r.avail + r.delta)::text), null::bigint
        from unnest(v_all) x join unnest(v_accounts) r on r.n = x.n where x.n = any(v_out);
      v_all := task_promises_without(v_all, v_out);
    end if;
    perform task_hold(v_all, v_accounts);
  end if;
  if v_has_draw then perform draws_hold(v_all); end if;

  if v_all is null or cardinality(v_all) < cardinality(v_given) then
    delete from idempotency i using unnest(v_given) x
      where i.user_id = any(v_users) and i.user_id = x.user_id and i.key = x.key and i.task_id = x.id
        and not exists (select 1 from unnest(v_all) y where y.n = x.n);
    if v_all is null then return; end if;
  end if;

  if v_has_request then
    insert into recent_request (user_id, request_hash, task_id, at)
      select x.user_id, x.request_hash, x.id, x.created_at from unnest(v_all) x where x.request_hash is not null
      on conflict (user_id, request_hash) do update set task_id = excluded.task_id, at = excluded.at;
  end if;
  if v_has_spend then
    insert into policy_spend (task_id, user_id, usd_micros, authorized_micros, state, at)
      select x.id, x.user_id, x.counted, x.authorized, 'reserved', x.created_at from unnest(v_all) x
        where x.counted is not null;
  end if;
  if v_has_gas then
    update sponsor_day d set wei = d.wei + x.gas_wei from unnest(v_all) x
      where d.user_id = any(v_users) and d.user_id = x.user_id and d.chain_id = x.gas_chain and d.day = x.gas_day;
    insert into sponsor_charge (task_id, user_id, chain_id, day, wei)
      select x.id, x.user_id, x.gas_chain, x.gas_day, x.gas_wei from unnest(v_all) x where x.gas_wei is not null;
  end if;
  insert into task (id, shard, user_id, parent_id, idempotency_key, kind, kind_version, input, data, step, status,
      state, deadline, created_at, updated_at)
    select x.id, x.shard, x.user_id, x.parent_id, x.idempotency_key, x.kind, x.kind_version, x.input, x.data, x.step,
      x.status, x.state, x.deadline, x.created_at, x.updated_at from unnest(v_all) x;
  insert into task_queue (task_id, user_id, kind, priority, run_at, owner, orders)
    select x.id, x.user_id, x.kind || '@' || x.kind_version, x.priority, x.run_at, x.owner, coalesce(x.orders, 0)
    from unnest(v_all) x;
  if v_has_signature then
    perform signatures_store(array(select (x.id, x.signed, x.updated_at)::new_signature from unnest(v_all) x));
  end if;
  if v_has_rows then
    for v_table in select distinct r.key from unnest(v_all) x, jsonb_each(x.rows) r order by 1 loop
      execute format('insert into %I select r.* from unnest($1) x, jsonb_populate_recordset(null::%I, x.rows -> %L) r
        on conflict do nothing', v_table, v_table, v_table) using v_all;
    end loop;
  end if;
  return query select e.n, 'accepted', null::jsonb, e.last from user_events_append(
    array(select (x.n, x.user_id, x.id, x.events, x.updated_at)::new_user_events from unnest(v_all) x)) e;
end $$;
