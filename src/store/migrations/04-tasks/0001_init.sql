-- Durable tasks, what they sign and send, and what creates them: requests, schedules and price triggers. The hot paths
-- are functions, so that a commit is one round trip.

-- Tasks. Each step ends with one commit, which is fenced by the version. What changes with each claim stands in
-- task_queue, and no index has a column that a step changes, so that commits of steps are HOT updates.
create table task (
  id uuid primary key,
  shard smallint not null,
  user_id uuid not null,
  -- The task that created this one.
  parent_id uuid,
  idempotency_key text,
  kind text not null,
  -- Version of the steps with which the task was accepted, and runs to its end.
  kind_version integer not null,
  input jsonb not null,
  -- What the steps have stored for the steps after them.
  data jsonb not null,
  -- The step that runs next.
  step text not null,
  status text not null check (status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
  -- Progress in words of the domain; the reason code once the task has failed or was cancelled.
  state text not null,
  -- What happened outside. It is unknown while signed bytes may still land.
  outcome text check (outcome in ('executed', 'not_executed', 'partial', 'unknown')),
  result jsonb,
  error jsonb,
  cancel_requested boolean not null default false,
  deadline timestamptz not null,
  -- Failed attempts of the present step.
  attempts integer not null default 0,
  -- Fencing token, raised with each claim and each commit.
  version integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  completed_at timestamptz,
  constraint unknown_is_never_final check (outcome is distinct from 'unknown' or status = 'running'),
  constraint ended_task_has_an_outcome check (
    (status in ('completed', 'failed', 'cancelled'))
      = (completed_at is not null and outcome is not null and outcome <> 'unknown'))
-- A few updates in the first seconds, then none: free space for more versions keeps them HOT. A fifth of millions of
-- rows is too long to wait for a vacuum: pages of lists are index-only scans, which read the table where no vacuum has
-- marked its pages, and the statistics of users and kinds age.
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
-- Lists of a user's tasks, newest first: all, by kind, and by status.
create index task_of_user on task (user_id, id desc);
create index task_kind_of_user on task (user_id, kind, id desc);
create index task_status_of_user on task (user_id, status, id desc) include (kind);
-- What a user's tasks did in the last seconds, which reads of the venue may not show yet.
create index task_recent_of_user on task (user_id, completed_at) where completed_at is not null;

-- What there is to run: one narrow row for each task that has not ended, deleted with its end. Every transaction locks
-- the row of the task before this one; a claim skips a task that is locked.
create table task_queue (
  task_id uuid primary key,
  user_id uuid not null,
  -- Name and version, as 'earn_deposit@1': an instance claims only what it can run.
  kind text not null,
  -- Lowest first.
  priority smallint not null,
  run_at timestamptz not null,
  -- The instance that runs the task, for as long as its lease lasts; null where none does.
  owner uuid
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);
create index task_queue_ready on task_queue (priority, run_at) where owner is null;
create index task_queue_owned on task_queue (owner) where owner is not null;
create index task_queue_of_user on task_queue (user_id, task_id desc);

-- Idempotency keys of requests, schedules and triggers.
create table idempotency (
  user_id uuid not null,
  key text not null check (length(key) between 1 and 255),
  operation text not null,
  body_hash text not null,
  -- The task of the key. Keys of tasks are never deleted.
  task_id uuid,
  -- The reply to a request that made no task. Such rows are deleted by age.
  response jsonb,
  at timestamptz not null,
  primary key (user_id, key)
);
create index idempotency_reply_age on idempotency (at) where task_id is null;

-- What a task does outside of this database: one signed intent. It is stored before it is sent, and is the record of
-- what the policy has allowed.
create table effect (
  id uuid primary key,
  task_id uuid not null,
  step text not null,
  kind text not null,
  -- What the policy has allowed.
  intent jsonb not null,
  signed jsonb not null,
  -- Its id outside, such as the hash of the signed calls.
  external_id text not null,
  status text not null check (status in ('prepared', 'sent', 'confirmed', 'rejected', 'dropped', 'unknown')),
  -- Id of the policy's receipt.
  policy_receipt text not null,
  -- Evidence for the final status, such as the block of the receipt.
  proof jsonb,
  -- After this it can no longer land.
  valid_until timestamptz,
  at timestamptz not null,
  unique (kind, external_id)
-- One or two changes of the status, which no index has: with some free space they are HOT.
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index effect_of_task on effect (task_id);

-- Signed transactions of an effect. A replacement is a further row under the same nonce.
create table tx_attempt (
  effect_id uuid not null references effect (id),
  -- Counts the transactions of the effect from 0.
  n integer not null,
  -- The bytes to send.
  raw text not null,
  -- Transaction hash, or the venue's id of the action.
  external_id text not null unique,
  nonce_kind text not null,
  chain text not null,
  signer text not null,
  nonce bigint not null,
  status text not null check (status in ('prepared', 'sent', 'confirmed', 'replaced', 'dropped')),
  at timestamptz not null,
  primary key (effect_id, n),
  unique (nonce_kind, chain, signer, nonce, n)
-- As effect.
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Next nonce of each signer. The lock on its row serialises the signatures of that signer.
create table nonce_sequence (
  -- Protocol of the nonce, such as 'evm'.
  kind text not null,
  chain text not null,
  signer text not null,
  next bigint not null,
  -- The signer comes before the chain: a nonce of a user is looked up without its chain.
  primary key (kind, signer, chain)
-- The row of a sponsor is updated by each of its transactions: few live rows, many dead ones.
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200,
  autovacuum_vacuum_cost_delay = 0);

-- Creates a task at each slot of a grid of times. The slot is part of the task's idempotency key. Slots that were
-- missed make one task.
create table schedule (
  id uuid primary key,
  -- Null for the system's own.
  user_id uuid,
  kind text not null,
  input jsonb not null,
  every_seconds integer not null,
  next_at timestamptz not null,
  created_at timestamptz not null
);
create index schedule_due on schedule (next_at);

-- Creates a task when a price crosses the trigger: take-profits and stop-losses that the gateway hosts.
create table trigger_order (
  id uuid primary key,
  user_id uuid not null,
  kind text not null,
  market text not null,
  -- Fires at or below the trigger price, or at or above it.
  direction text not null check (direction in ('lte', 'gte')),
  trigger_price numeric not null,
  -- When one order of a group fires, the others are cancelled.
  oco_group uuid,
  input jsonb not null,
  -- An order waits until the entry order that it protects has filled.
  status text not null check (status in ('waiting', 'armed', 'fired', 'cancelled', 'expired')),
  -- Client order id of the entry order.
  entry_cloid text,
  -- The task that asked for this order.
  source_task_id uuid,
  -- The task that it created when it fired.
  task_id uuid,
  expires_at timestamptz,
  created_at timestamptz not null
);
create index trigger_armed on trigger_order (market, direction, trigger_price) where status = 'armed';
create index trigger_waiting on trigger_order (market) where status = 'waiting';
create index trigger_of_entry on trigger_order (entry_cloid) where status = 'waiting';
create index trigger_open on trigger_order (user_id, created_at) where status in ('waiting', 'armed');
create index trigger_oco on trigger_order (oco_group) where oco_group is not null;

-- Which instance checks the triggers of a market.
create table market_lease (
  market text primary key,
  owner uuid,
  -- Fencing token, raised when another instance takes over.
  epoch integer not null default 0,
  lease_until timestamptz
);

-- Stores what a step has signed, before it is sent.
create function effect_store(p jsonb, p_task uuid, p_at timestamptz) returns void language plpgsql as $$
begin
  if p ? 'effect' then
    insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, valid_until, at)
      select (e ->> 'id')::uuid, p_task, p ->> 'done', e ->> 'kind', e -> 'intent', e -> 'signed', e ->> 'externalId',
        'prepared', e ->> 'policyReceipt', (e ->> 'validUntil')::timestamptz, p_at
      from (select p -> 'effect' as e) x;
  end if;
  if p ? 'txAttempt' then
    insert into tx_attempt (effect_id, n, raw, external_id, nonce_kind, chain, signer, nonce, status, at)
      select (c ->> 'effectId')::uuid,
        coalesce((select max(n) + 1 from tx_attempt where effect_id = (c ->> 'effectId')::uuid), 0),
        c ->> 'raw', c ->> 'externalId', c ->> 'nonceKind', c ->> 'chain', c ->> 'signer', (c ->> 'nonce')::bigint,
        'prepared', p_at
      from (select p -> 'txAttempt' as c) x;
  end if;
end $$;

-- Makes an accepted task ready, or gives it to the instance that accepted it.
create function task_enqueue(p jsonb) returns void language sql as $$
  insert into task_queue (task_id, user_id, kind, priority, run_at, owner)
    values ((p ->> 'id')::uuid, (p ->> 'user')::uuid, (p ->> 'kind') || '@' || (p ->> 'version'),
      (p ->> 'priority')::smallint, (p ->> 'runAt')::timestamptz, (p ->> 'owner')::uuid)
$$;

-- Accepts a task: the task, its idempotency key, balance snapshots, movements and events.
create function task_accept(p jsonb) returns void language plpgsql as $$
declare
  v_at timestamptz := (p ->> 'at')::timestamptz;
  v_id uuid := (p ->> 'id')::uuid;
  v_user uuid := (p ->> 'user')::uuid;
  v_shard integer := (p ->> 'shard')::integer;
  v_snapshots jsonb := coalesce(p -> 'snapshots', '[]');
  v_moves jsonb := coalesce(p -> 'moves', '[]');
  v_snapshot jsonb;
begin
  insert into task (id, shard, user_id, kind, kind_version, status, state, step, data, input, deadline, parent_id,
      idempotency_key, created_at, updated_at)
    -- It is running where its instance runs it at once: then its first commit is a HOT update too.
    values (v_id, v_shard, v_user, p ->> 'kind', (p ->> 'version')::integer,
      case when p ->> 'owner' is null then 'pending' else 'running' end, 'accepted', p ->> 'step', p -> 'data',
      p -> 'input', (p ->> 'deadline')::timestamptz, (p ->> 'parent')::uuid, p ->> 'key', v_at, v_at);
  perform task_enqueue(p);
  if p ->> 'key' is not null then
    insert into idempotency (user_id, key, operation, body_hash, task_id, at)
      values (v_user, p ->> 'key', p ->> 'operation', p ->> 'hash', v_id, v_at);
  end if;
  if jsonb_array_length(v_snapshots) > 1 or (jsonb_array_length(v_snapshots) = 1 and
      (jsonb_array_length(v_moves) > 1 or v_moves #> '{0,debit}' <> v_snapshots #> '{0,account}')) then
    perform ledger_lock(v_snapshots, v_moves, v_shard);
  end if;
  for v_snapshot in select * from jsonb_array_elements(v_snapshots) s
      order by s #>> '{account,asset}', s #>> '{account,subAccount}' loop
    perform ledger_apply_snapshot(v_snapshot, v_shard, v_at);
  end loop;
  if jsonb_array_length(v_moves) > 0 then
    perform ledger_apply(v_moves, v_id, v_shard, v_at);
  end if;
  perform user_event_append(v_user, v_id, p -> 'events', v_at);
end $$;

-- Accepts a task and commits its first step, which signs, at once: the task begins as p_step leaves it. Returns the
-- number of its last event, or 0 without events.
create function task_accept_signed(p jsonb, p_step jsonb) returns bigint language plpgsql as $$
declare
  v_at timestamptz := (p ->> 'at')::timestamptz;
  v_done_at timestamptz := (p_step ->> 'at')::timestamptz;
  v_id uuid := (p ->> 'id')::uuid;
  v_user uuid := (p ->> 'user')::uuid;
begin
  insert into task (id, shard, user_id, kind, kind_version, status, state, step, data, input, version, deadline,
      parent_id, idempotency_key, created_at, updated_at)
    values (v_id, (p ->> 'shard')::smallint, v_user, p ->> 'kind', (p ->> 'version')::integer, 'running',
      p_step ->> 'state', p_step ->> 'step', (p -> 'data') || (p_step -> 'data'), p -> 'input', 2,
      (p ->> 'deadline')::timestamptz, (p ->> 'parent')::uuid, p ->> 'key', v_at, v_done_at);
  perform task_enqueue(p);
  if p ->> 'key' is not null then
    insert into idempotency (user_id, key, operation, body_hash, task_id, at)
      values (v_user, p ->> 'key', p ->> 'operation', p ->> 'hash', v_id, v_at);
  end if;
  perform effect_store(p_step, v_id, v_done_at);
  return coalesce(user_event_append(v_user, v_id, p_step -> 'events', v_done_at), 0);
end $$;

-- Commits one step if nobody has claimed or changed the task since the caller read it. Returns the number of its last
-- event, or 0 without events; null where the version is another one: then nothing is written.
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
      status = p ->> 'status', state = p ->> 'state', outcome = p ->> 'outcome', step = p ->> 'step',
      data = data || (p -> 'data'), result = coalesce(p -> 'result', result), error = coalesce(p -> 'error', error),
      attempts = (p ->> 'attempts')::integer, version = version + 1,
      updated_at = v_at, completed_at = case when v_ended then v_at end
    -- The version also detects a repeat after a lost reply. A stored effect outweighs a cancel request.
    where id = v_id and version = (p ->> 'version')::integer and status in ('pending', 'running')
      and (not cancel_requested or p ->> 'status' = 'cancelled' or exists
        (select 1 from effect where task_id = v_id and effect.status not in ('dropped', 'rejected')))
    returning * into v_task;
  if not found then return null; end if;
  if v_ended then
    delete from task_queue where task_id = v_id;
  elsif p ->> 'runAt' is not null then
    update task_queue set owner = null, run_at = (p ->> 'runAt')::timestamptz where task_id = v_id;
  end if;

  -- What the acceptance counted, before the ledger: in this order every transaction locks.
  if p ->> 'outcome' = 'not_executed' then
    update policy_spend set state = 'released' where task_id = v_id and state = 'reserved';
    perform sponsor_settle(v_id, 0);
  end if;

  if jsonb_array_length(coalesce(p -> 'moves', '[]')) > 0 then
    perform ledger_apply(p -> 'moves', v_id, v_task.shard, v_at);
  end if;
  if v_ended then
    for v_hold in select * from transfer where task_id = v_id and state = 'pending'
        order by debit, id for no key update loop
      perform ledger_settle(v_hold.id, v_hold.debit, v_hold.credit, v_hold.amount, 0, v_at);
    end loop;
  end if;

  perform effect_store(p, v_id, v_at);
  for v_update in select * from jsonb_array_elements(coalesce(p -> 'effects', '[]')) loop
    update effect set status = v_update ->> 'status', proof = coalesce(v_update -> 'proof', proof)
      where id = (v_update ->> 'effectId')::uuid and task_id = v_id
        and status not in ('confirmed', 'rejected', 'dropped');
    if v_update ->> 'status' = 'confirmed' then
      update tx_attempt
        set status = case when external_id = v_update ->> 'attemptExternalId' then 'confirmed' else 'replaced' end
        where effect_id = (v_update ->> 'effectId')::uuid;
    elsif v_update ->> 'status' = 'dropped' then
      update tx_attempt set status = 'dropped' where effect_id = (v_update ->> 'effectId')::uuid;
    elsif v_update ->> 'status' = 'sent' then
      update tx_attempt set status = 'sent' where effect_id = (v_update ->> 'effectId')::uuid and status = 'prepared';
    end if;
  end loop;
  if v_ended and p ->> 'outcome' = 'not_executed' and exists
      (select 1 from effect where task_id = v_id and status in ('prepared', 'sent', 'unknown')) then
    raise exception 'task % cannot end as not executed: its effect may still land', v_id using errcode = 'PT004';
  end if;

  return coalesce(user_event_append(v_task.user_id, v_id, p -> 'events', v_at), 0);
end $$;

-- Requests the cancellation of a task that has sent nothing. The row lock comes first, so that it waits for a
-- transaction that is storing a signature; the next statement has a snapshot of its own and sees that signature.
create function task_cancel(p_task uuid, p_user uuid, p_at timestamptz) returns setof task language plpgsql as $$
begin
  perform 1 from task where id = p_task and user_id = p_user and status in ('pending', 'running') for no key update;
  if not found then return; end if;
  return query update task set cancel_requested = true
    where id = p_task and not exists
      (select 1 from effect where task_id = p_task and status not in ('dropped', 'rejected'))
    returning *;
  if found then
    update task_queue set run_at = p_at where task_id = p_task and run_at > p_at;
  end if;
end $$;
