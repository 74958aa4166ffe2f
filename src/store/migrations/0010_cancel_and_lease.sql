-- Requests the end of a task of which nothing has been sent. The row lock comes first, so that a transaction that is
-- storing a signature is waited for; the next statement has a snapshot of its own and sees that signature.
create function task_cancel(p_task uuid, p_user uuid, p_at timestamptz) returns setof task language plpgsql as $$
begin
  perform 1 from task where id = p_task and user_id = p_user and status in ('pending', 'running') for no key update;
  if not found then return; end if;
  return query update task set cancel_requested = true, run_at = least(run_at, p_at)
    where id = p_task and not exists
      (select 1 from effect where task_id = p_task and status not in ('dropped', 'rejected'))
    returning *;
end $$;

-- As before, and: a stored effect outweighs a cancel request; a commit renews the lease of a task that stays with its
-- owner; a task whose effect may still land cannot end as not executed.
create or replace function task_write(p jsonb) returns bigint language plpgsql as $$
declare
  v_at timestamptz := (p ->> 'at')::timestamptz;
  v_id uuid := (p ->> 'id')::uuid;
  v_ended boolean := p ->> 'status' in ('completed', 'failed', 'cancelled');
  v_task task;
  v_update jsonb;
  v_hold transfer;
begin
  update task set
      status = p ->> 'status', state = p ->> 'state', outcome = p ->> 'outcome', step = p ->> 'step', data = data || (p -> 'data'),
      result = coalesce(p -> 'result', result), error = coalesce(p -> 'error', error), attempts = (p ->> 'attempts')::integer,
      owner = case when v_ended or p ->> 'parkMs' is not null then null else owner end,
      lease_until = coalesce(clock_timestamp() + make_interval(secs => (p ->> 'leaseSeconds')::float8), lease_until),
      run_at = coalesce((p ->> 'runAt')::timestamptz, run_at), commits = commits + 1,
      updated_at = v_at, completed_at = case when v_ended then v_at end
    -- The count of commits tells a repeat after a lost reply: what has landed once can never be taken back.
    where id = v_id and epoch = (p ->> 'epoch')::integer and owner = (p ->> 'owner')::uuid and commits = (p ->> 'commits')::integer
      and status in ('pending', 'running') and (not cancel_requested or p ->> 'status' = 'cancelled' or exists
        (select 1 from effect where task_id = v_id and effect.status not in ('dropped', 'rejected')))
    returning * into v_task;
  if not found then return null; end if;

  insert into task_step (task_id, step, epoch, attempt, out, at)
    values (v_id, p ->> 'done', (p ->> 'epoch')::integer, (p ->> 'attempt')::integer, p -> 'data', v_at);

  if jsonb_array_length(coalesce(p -> 'moves', '[]')) > 0 then
    perform ledger_apply(p -> 'moves', v_id, v_task.shard, v_at);
  end if;
  if v_ended then
    for v_hold in select * from transfer where task_id = v_id and state = 'pending' order by debit, id for no key update loop
      perform ledger_settle(v_hold.id, v_hold.debit, v_hold.credit, v_hold.amount, 0, v_at);
    end loop;
  end if;

  perform effect_store(p, v_id, v_at);
  for v_update in select * from jsonb_array_elements(coalesce(p -> 'effects', '[]')) loop
    update effect set status = v_update ->> 'status', proof = coalesce(v_update -> 'proof', proof)
      where id = (v_update ->> 'effectId')::uuid and task_id = v_id and status not in ('confirmed', 'rejected', 'dropped');
    if v_update ->> 'status' = 'confirmed' then
      update carrier set status = case when ext_id = v_update ->> 'carrierExtId' then 'confirmed' else 'replaced' end
        where effect_id = (v_update ->> 'effectId')::uuid;
    elsif v_update ->> 'status' = 'dropped' then
      update carrier set status = 'dropped' where effect_id = (v_update ->> 'effectId')::uuid;
    elsif v_update ->> 'status' = 'sent' then
      update carrier set status = 'sent' where effect_id = (v_update ->> 'effectId')::uuid and status = 'prepared';
    end if;
  end loop;
  if v_ended and p ->> 'outcome' = 'not_executed' and exists
      (select 1 from effect where task_id = v_id and status in ('prepared', 'sent', 'unknown')) then
    raise exception 'task % cannot end as not executed: its effect may still land', v_id using errcode = 'PT004';
  end if;

  return coalesce(outbox_add(v_task.user_id, v_id, p -> 'events', v_at), 0);
end $$;
