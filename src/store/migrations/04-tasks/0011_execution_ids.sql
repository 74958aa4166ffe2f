-- What identifies an execution to chains and venues. Null: the id of the task, or of the order, itself.

alter table task add column execution_id uuid;
-- An order that was created under a key has one that its request determines; its tasks derive theirs from it.
alter table trigger_order add column execution_id uuid;
alter type task_promise add attribute execution_id uuid;

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
      state, deadline, created_at, updated_at, execution_id)
    select x.id, x.shard, x.user_id, x.parent_id, x.idempotency_key, x.kind, x.kind_version, x.input, x.data, x.step,
      x.status, x.state, x.deadline, x.created_at, x.updated_at, x.execution_id from unnest(v_all) x;
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
