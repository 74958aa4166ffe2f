-- A commit tells how far its user's events are now, so that who listens here need not ask again.

-- Stores what a step has signed, before it is sent.
create function effect_store(p jsonb, p_task uuid, p_at timestamptz) returns void language plpgsql as $$
begin
  if p ? 'effect' then
    insert into effect (id, task_id, step, kind, intent, signed, ext_id, status, policy_receipt, valid_until, at)
      select (e ->> 'id')::uuid, p_task, p ->> 'done', e ->> 'kind', e -> 'intent', e -> 'signed', e ->> 'extId', 'prepared',
        e ->> 'policyReceipt', (e ->> 'validUntil')::timestamptz, p_at
      from (select p -> 'effect' as e) x;
  end if;
  if p ? 'carrier' then
    insert into carrier (effect_id, n, raw, ext_id, lane_kind, chain, signer, nonce, status, at)
      select (c ->> 'effectId')::uuid, coalesce((select max(n) + 1 from carrier where effect_id = (c ->> 'effectId')::uuid), 0),
        c ->> 'raw', c ->> 'extId', c ->> 'laneKind', c ->> 'chain', c ->> 'signer', (c ->> 'nonce')::bigint, 'prepared', p_at
      from (select p -> 'carrier' as c) x;
  end if;
end $$;

-- Commits one step if the caller still owns the task, and answers the number of its last event, or 0 where it tells
-- nobody. Null where the caller owns it no longer: then nothing was written.
create function task_write(p jsonb) returns bigint language plpgsql as $$
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
      run_at = coalesce((p ->> 'runAt')::timestamptz, run_at), commits = commits + 1,
      updated_at = v_at, completed_at = case when v_ended then v_at end
    -- The count of commits tells a repeat after a lost reply: what has landed once can never be taken back.
    where id = v_id and epoch = (p ->> 'epoch')::integer and owner = (p ->> 'owner')::uuid and commits = (p ->> 'commits')::integer
      and status in ('pending', 'running') and (not cancel_requested or p ->> 'status' = 'cancelled')
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

  return coalesce(outbox_add(v_task.user_id, v_id, p -> 'events', v_at), 0);
end $$;

-- Makes the promise with its first step done: the task begins as `p_step` leaves it, and nobody saw it otherwise.
create function task_open(p jsonb, p_step jsonb) returns bigint language plpgsql as $$
declare
  v_at timestamptz := (p ->> 'at')::timestamptz;
  v_done_at timestamptz := (p_step ->> 'at')::timestamptz;
  v_id uuid := (p ->> 'id')::uuid;
  v_user uuid := (p ->> 'user')::uuid;
begin
  insert into task (id, shard, user_id, kind, kind_version, status, state, step, data, input, priority, run_at, owner, epoch,
      lease_until, commits, deadline, parent_id, idempotency_key, created_at, updated_at)
    values (v_id, (p ->> 'shard')::smallint, v_user, p ->> 'kind', (p ->> 'version')::integer, 'running', p_step ->> 'state',
      p_step ->> 'step', (p -> 'data') || (p_step -> 'data'), p -> 'input', (p ->> 'priority')::smallint,
      (p ->> 'runAt')::timestamptz, (p ->> 'owner')::uuid, 1,
      clock_timestamp() + make_interval(secs => (p ->> 'leaseSeconds')::float8), 1,
      (p ->> 'deadline')::timestamptz, (p ->> 'parent')::uuid, p ->> 'key', v_at, v_done_at);
  if p ->> 'key' is not null then
    insert into idempotency (user_id, key, operation, body_hash, task_id, at)
      values (v_user, p ->> 'key', p ->> 'operation', p ->> 'hash', v_id, v_at);
  end if;
  insert into task_step (task_id, step, epoch, attempt, out, at)
    values (v_id, p_step ->> 'done', 1, (p_step ->> 'attempt')::integer, p_step -> 'data', v_done_at);
  perform effect_store(p_step, v_id, v_done_at);
  return coalesce(outbox_add(v_user, v_id, p_step -> 'events', v_done_at), 0);
end $$;

-- For instances of the version before, as long as one of them runs.
create or replace function task_commit(p jsonb) returns boolean language sql as $$
  select task_write(p) is not null
$$;
