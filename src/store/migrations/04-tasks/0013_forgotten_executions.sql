-- A task that looks up what was executed before it, and that the database forgot, has no effect yet: its outcome is
-- unknown, and no cancel ends it.

-- Commits steps, each one if nobody has claimed or changed its task since the caller read it. Returns one row for each
-- that was committed, with the number of its last event. A task that ends returns what is left of its holds; one that
-- executed nothing returns what it reserved of limits and gas, too. Locks are taken in the order of task_accept.
create or replace function task_step(p jsonb, p_wait_ms integer) returns table (n integer, last bigint) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
as $$
#variable_conflict use_column
declare
  v_all task_change[];
  v_ids uuid[];
  -- Orders whose task ends.
  v_orders uuid[];
  -- Whether any step has such a part. One pass finds them all, because each statement costs more than its rows.
  v_ends boolean;
  v_parks boolean;
  v_has_spent boolean;
  v_does_nothing boolean;
  v_has_moves boolean;
  v_has_signature boolean;
  v_has_effects boolean;
  v_change task_change;
begin
  perform wait_for_locks(p_wait_ms);
  select array_agg(x order by x.id), array_agg(x.id order by x.id), bool_or(x.status <> 'running'), bool_or(x.parked_until is not null),
      bool_or(x.spent is not null), bool_or(x.outcome = 'not_executed'), bool_or(x.moves is not null),
      bool_or(x.signed is not null), bool_or(x.effects is not null)
    into v_all, v_ids, v_ends, v_parks, v_has_spent, v_does_nothing, v_has_moves, v_has_signature, v_has_effects
    from jsonb_populate_recordset(null::task_change, p) x;
  -- An update of several rows has no order of its own.
  if cardinality(v_all) > 1 then
    perform 1 from task where id = any(v_ids) order by id for no key update;
  end if;
  with written as (
    update task t set status = x.status, state = x.state, outcome = x.outcome, step = x.step, data = t.data || x.data,
        result = coalesce(x.result, t.result), error = coalesce(x.error, t.error), attempts = x.attempts,
        version = t.version + 1, updated_at = x.at, completed_at = case when x.status <> 'running' then x.at end
      from unnest(v_all) x
      where t.id = any(v_ids) and t.id = x.id and t.version = x.version and t.status in ('pending', 'running')
        -- A stored effect outweighs a cancel request, and so does the look-up of one that was forgotten.
        and (not t.cancel_requested or x.status = 'cancelled' or 'unknown' in (t.outcome, x.outcome) or exists
          (select 1 from effect where task_id = t.id and effect.status not in ('dropped', 'rejected')))
      returning t.id, case when x.status <> 'running' then t.data ->> 'trigger_order_id' end as order_id)
  select array_agg(id), array_agg(order_id::uuid) filter (where order_id is not null) into v_ids, v_orders from written;
  if v_ids is null then return; end if;
  if cardinality(v_ids) < cardinality(v_all) then
    v_all := array(select x from unnest(v_all) x where x.id = any(v_ids) order by x.id);
  end if;

  if v_orders is not null then
    if cardinality(v_orders) > 1 then
      perform 1 from trigger_order where id = any(v_orders) order by id for no key update;
    end if;
    -- One that is armed again, or was cancelled with its task, is not fired any more.
    update trigger_order o set task_end = x.status, updated_at = x.at from unnest(v_all) x
      where o.id = any(v_orders) and o.task_id = x.id and o.status = 'fired';
  end if;
  if v_ends then
    delete from task_queue using unnest(v_all) x
      where task_id = any(v_ids) and task_id = x.id and x.status <> 'running';
  end if;
  if v_parks then
    update task_queue set owner = null, run_at = x.parked_until from unnest(v_all) x
      where task_id = any(v_ids) and task_id = x.id and x.parked_until is not null and x.status = 'running';
  end if;

  if v_does_nothing then
    perform sponsor_settle(c.task_id, 0) from (
      select c.task_id from unnest(v_all) x join sponsor_charge c on c.task_id = x.id
        where c.task_id = any(v_ids) and x.outcome = 'not_executed' and not c.is_final order by c.user_id, c.chain_id, c.task_id) c;
  end if;

  if v_has_moves then
    perform ledger_lock(array(
      select a from unnest(v_all) x, ledger_accounts(x.moves, x.shard) a where x.moves is not null
      union select unnest(array[h.debit, h.credit]) from unnest(v_all) x
        join transfer h on h.task_id = x.id where h.task_id = any(v_ids) and h.state = 'pending'));
    for v_change in select * from unnest(v_all) x where x.moves is not null loop
      perform ledger_apply(v_change.moves, v_change.id, v_change.shard, v_change.at);
    end loop;
  end if;
  if v_ends or v_has_spent then perform task_settle(v_all, v_ids); end if;
  if v_does_nothing then
    update policy_spend s set state = 'released' from unnest(v_all) x
      where s.task_id = any(v_ids) and x.outcome = 'not_executed' and s.task_id = x.id and s.state = 'reserved';
  end if;

  if v_has_signature then
    perform signatures_store(array(select (x.id, x.signed, x.at)::new_signature from unnest(v_all) x));
  end if;
  if v_has_effects then perform effects_update(v_all); end if;
  if v_does_nothing then
    select x.* into v_change from unnest(v_all) x where x.outcome = 'not_executed' and exists
      (select 1 from effect where task_id = x.id and effect.status in ('prepared', 'sent', 'unknown')) limit 1;
    if found then
      raise exception 'task % cannot end as not executed: its effect may still land', v_change.id using errcode = 'PT004';
    end if;
  end if;

  return query select * from user_events_append(
    array(select (x.n, x.user_id, x.id, x.events, x.at)::new_user_events from unnest(v_all) x));
end $$;

-- Requests the cancellation of a task that has sent nothing. The row lock comes first, so that it waits for a
-- transaction that is storing a signature; the next statement has a snapshot of its own and sees that signature.
create or replace function task_cancel(p_task uuid, p_user uuid, p_at timestamptz) returns setof task language plpgsql as $$
begin
  perform 1 from task where id = p_task and user_id = p_user and status in ('pending', 'running') for no key update;
  if not found then return; end if;
  return query update task set cancel_requested = true
    where id = p_task and outcome is distinct from 'unknown' and not exists
      (select 1 from effect where task_id = p_task and status not in ('dropped', 'rejected'))
    returning *;
  if found then
    update task_queue set run_at = p_at where task_id = p_task and run_at > p_at;
  end if;
end $$;
