-- Tasks, effects, ledger, events, timers. Forward only.

create table task (
  id uuid primary key,
  shard smallint not null,
  user_id uuid not null,
  kind text not null,
  kind_version integer not null,
  status text not null check (status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
  state text not null,
  outcome text check (outcome in ('executed', 'not_executed', 'partial', 'unknown')),
  step text not null,
  data jsonb not null,
  input jsonb not null,
  result jsonb,
  error jsonb,
  priority smallint not null,
  run_at timestamptz not null,
  owner uuid,
  epoch integer not null default 0,
  lease_until timestamptz,
  attempts integer not null default 0,
  commits integer not null default 0,
  deadline timestamptz not null,
  cancel_requested boolean not null default false,
  parent_id uuid,
  idempotency_key text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  completed_at timestamptz,
  constraint unknown_is_never_final check (outcome is distinct from 'unknown' or status = 'running'),
  constraint ended_tells_its_outcome check ((status in ('completed', 'failed', 'cancelled')) = (completed_at is not null and outcome is not null and outcome <> 'unknown'))
) with (fillfactor = 70);
-- Leased work is in neither index entry that a claim scans, and step commits stay HOT: epoch and lease are not indexed.
create index task_ready on task (priority, run_at) where status in ('pending', 'running') and owner is null;
create index task_leased on task (owner) where owner is not null;
create index task_of_user on task (user_id, id desc);

create table task_step (
  task_id uuid not null references task (id),
  step text not null,
  epoch integer not null,
  attempt integer not null,
  out jsonb not null,
  at timestamptz not null
);
create index task_step_of_task on task_step (task_id);

create table idempotency (
  user_id uuid not null,
  key text not null check (length(key) between 1 and 255),
  operation text not null,
  body_hash text not null,
  task_id uuid references task (id),
  response jsonb,
  at timestamptz not null,
  primary key (user_id, key)
);

create table lane (
  kind text not null,
  chain text not null,
  signer text not null,
  next bigint not null,
  primary key (kind, chain, signer)
);

create table effect (
  id uuid primary key,
  task_id uuid not null references task (id),
  step text not null,
  kind text not null,
  intent jsonb not null,
  signed jsonb not null,
  ext_id text not null,
  status text not null check (status in ('prepared', 'sent', 'confirmed', 'rejected', 'dropped', 'unknown')),
  policy_receipt text not null,
  proof jsonb,
  valid_until timestamptz,
  at timestamptz not null,
  unique (kind, ext_id)
);
create index effect_of_task on effect (task_id);
create index effect_live on effect (kind, at) where status in ('prepared', 'sent', 'unknown');

create table carrier (
  effect_id uuid not null references effect (id),
  n integer not null,
  raw text not null,
  ext_id text not null unique,
  lane_kind text not null,
  chain text not null,
  signer text not null,
  nonce bigint not null,
  status text not null check (status in ('prepared', 'sent', 'confirmed', 'replaced', 'dropped')),
  at timestamptz not null,
  primary key (effect_id, n),
  unique (lane_kind, chain, signer, nonce, n)
);

create table account (
  id bigint generated always as identity primary key,
  shard smallint not null,
  owner uuid not null,
  asset text not null,
  book text not null,
  avail numeric(78, 0) not null default 0,
  held numeric(78, 0) not null default 0 check (held >= 0),
  settlements bigint not null default 0,
  unique (owner, asset, book),
  constraint only_the_outside_may_owe check (avail >= 0 or book like 'outside:%')
) with (fillfactor = 70);

create table transfer (
  id bigint generated always as identity primary key,
  debit bigint not null references account (id),
  credit bigint not null references account (id),
  key text not null,
  amount numeric(78, 0) not null check (amount > 0),
  state text not null check (state in ('pending', 'posted', 'voided')),
  task_id uuid,
  reason text not null,
  at timestamptz not null,
  settled_at timestamptz,
  unique (key)
);
create index transfer_of_task on transfer (task_id) where task_id is not null;

-- Append-only: the truth from which every balance can be counted again.
create table entry (
  account_id bigint not null references account (id),
  transfer_id bigint not null references transfer (id),
  phase text not null check (phase in ('transfer', 'hold', 'post', 'void')),
  d_avail numeric(78, 0) not null,
  d_held numeric(78, 0) not null,
  at timestamptz not null,
  primary key (account_id, transfer_id, phase)
);
create index entry_of_transfer on entry (transfer_id);

create function entry_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'ledger entries are never changed';
end $$;
create trigger entry_append_only before update or delete on entry for each row execute function entry_is_append_only();

create function entries_balance() returns trigger language plpgsql as $$
begin
  if (select sum(d_avail + d_held) from entry where transfer_id = new.transfer_id) <> 0 then
    raise exception 'entries of transfer % do not sum to zero', new.transfer_id;
  end if;
  return null;
end $$;
create constraint trigger entries_sum_to_zero after insert on entry
  deferrable initially deferred for each row execute function entries_balance();

create table user_stream (
  user_id uuid primary key,
  seq bigint not null
);

create table outbox (
  user_id uuid not null,
  seq bigint not null,
  type text not null,
  task_id uuid,
  subject jsonb,
  body jsonb not null,
  at timestamptz not null,
  primary key (user_id, seq)
);
create index outbox_age on outbox (at);

create table schedule (
  id uuid primary key,
  user_id uuid,
  kind text not null,
  input jsonb not null,
  every_seconds integer,
  cron text,
  timezone text not null default 'UTC',
  misfire text not null default 'once' check (misfire in ('skip', 'once')),
  status text not null default 'active' check (status in ('active', 'paused', 'ended')),
  next_at timestamptz,
  last_slot timestamptz,
  created_at timestamptz not null
);
create index schedule_due on schedule (next_at) where status = 'active';

create table trigger_order (
  id uuid primary key,
  user_id uuid not null,
  kind text not null,
  market text not null,
  direction text not null check (direction in ('lte', 'gte')),
  trigger_price numeric not null,
  oco_group uuid,
  input jsonb not null,
  status text not null check (status in ('armed', 'fired', 'cancelled', 'expired')),
  task_id uuid,
  expires_at timestamptz,
  created_at timestamptz not null
);
create index trigger_armed on trigger_order (market, direction, trigger_price) where status = 'armed';
create index trigger_oco on trigger_order (oco_group) where oco_group is not null;

create table market_watch (
  market text primary key,
  owner uuid,
  epoch integer not null default 0,
  lease_until timestamptz,
  last_price numeric,
  seen_at timestamptz
);

create table instance (
  id uuid primary key,
  started_at timestamptz not null,
  seen_at timestamptz not null
);

create table audit (
  user_id uuid not null,
  seq bigint not null,
  prev text not null,
  hash text not null,
  body jsonb not null,
  at timestamptz not null,
  primary key (user_id, seq)
);

-- What this database belongs to, and must not be separated from.
create table belonging (
  key text primary key,
  value text not null
);

-- The hot paths are functions, so that a commit that moves money is one round trip, whatever it consists of.

-- The far side of payments is spread over sub-accounts by the user's shard: one hot row would serialise every user.
create function ledger_book(p_ref jsonb, p_shard integer) returns text language sql immutable as $$
  select case when p_ref ->> 'book' = 'outside' then 'outside:' || (p_shard % 16) else p_ref ->> 'book' end
$$;

create function ledger_account(p_ref jsonb, p_shard integer) returns bigint language plpgsql as $$
declare
  v_id bigint;
  v_book text := ledger_book(p_ref, p_shard);
begin
  loop
    select id into v_id from account where owner = (p_ref ->> 'owner')::uuid and asset = p_ref ->> 'asset' and book = v_book;
    if found then return v_id; end if;
    insert into account (shard, owner, asset, book) values (p_shard, (p_ref ->> 'owner')::uuid, p_ref ->> 'asset', v_book)
      on conflict do nothing;
  end loop;
end $$;

create function ledger_write(p_transfer bigint, p_account bigint, p_phase text, p_avail numeric, p_held numeric, p_settles boolean, p_at timestamptz)
returns void language plpgsql as $$
begin
  insert into entry (account_id, transfer_id, phase, d_avail, d_held, at) values (p_account, p_transfer, p_phase, p_avail, p_held, p_at);
  update account set avail = avail + p_avail, held = held + p_held, settlements = settlements + (case when p_settles then 1 else 0 end)
    where id = p_account;
end $$;

create function ledger_settle(p_transfer bigint, p_debit bigint, p_credit bigint, p_amount numeric, p_post numeric, p_at timestamptz)
returns void language plpgsql as $$
begin
  -- What a hold does not deliver goes back to where it was taken from.
  if p_post > 0 then
    perform ledger_write(p_transfer, p_debit, 'post', p_amount - p_post, -p_amount, true, p_at);
    perform ledger_write(p_transfer, p_credit, 'post', p_post, 0, true, p_at);
    update transfer set state = 'posted', settled_at = p_at where id = p_transfer;
  else
    perform ledger_write(p_transfer, p_debit, 'void', p_amount, -p_amount, true, p_at);
    update transfer set state = 'voided', settled_at = p_at where id = p_transfer;
  end if;
end $$;

create function ledger_observe(p_seen jsonb, p_shard integer, p_at timestamptz) returns void language plpgsql as $$
declare
  v_id bigint := ledger_account(p_seen -> 'account', p_shard);
  v_account account;
  v_delta numeric;
  v_far bigint;
  v_transfer bigint;
begin
  select * into v_account from account where id = v_id for no key update;
  if v_account.settlements <> (p_seen ->> 'settlements')::bigint then
    raise exception 'stale observation' using errcode = 'PT002';
  end if;
  v_delta := greatest((p_seen ->> 'totalUnits')::numeric - v_account.avail - v_account.held, -v_account.avail);
  if v_delta = 0 then return; end if;
  v_far := ledger_account(jsonb_build_object('owner', p_seen ->> 'house', 'asset', v_account.asset, 'book', 'outside'), p_shard);
  insert into transfer (debit, credit, key, amount, state, reason, at, settled_at)
    values (case when v_delta > 0 then v_far else v_id end, case when v_delta > 0 then v_id else v_far end,
      'observed:' || v_id || ':' || gen_random_uuid(), abs(v_delta), 'posted', 'observed', p_at, p_at)
    returning id into v_transfer;
  perform ledger_write(v_transfer, v_id, 'transfer', v_delta, 0, false, p_at);
  perform ledger_write(v_transfer, v_far, 'transfer', -v_delta, 0, false, p_at);
end $$;

create function ledger_apply(p_moves jsonb, p_task uuid, p_shard integer, p_at timestamptz) returns void language plpgsql as $$
declare
  v_move jsonb;
  v_debit bigint;
  v_credit bigint;
  v_amount numeric;
  v_avail numeric;
  v_transfer transfer;
begin
  -- Row locks in one order everywhere, the far side last, so that two transactions never wait for each other; and weak
  -- enough to let a foreign key pass that only wants the row to stay.
  perform 1 from account where id in (
    select ledger_account(m -> side, p_shard) from jsonb_array_elements(p_moves) m, unnest(array['debit', 'credit']) side
    where m ? side and (side = 'debit' or m ->> 'move' = 'transfer')
    union select t.debit from jsonb_array_elements(p_moves) m join transfer t on t.key = m ->> 'key' where m ->> 'move' in ('post', 'void')
    union select t.credit from jsonb_array_elements(p_moves) m join transfer t on t.key = m ->> 'key' where m ->> 'move' = 'post'
  ) order by (book like 'outside:%'), id for no key update;

  for v_move in select * from jsonb_array_elements(p_moves) loop
    if v_move ->> 'move' in ('transfer', 'hold') then
      v_debit := ledger_account(v_move -> 'debit', p_shard);
      v_credit := ledger_account(v_move -> 'credit', p_shard);
      v_amount := (v_move ->> 'amountUnits')::numeric;
      insert into transfer (debit, credit, key, amount, state, task_id, reason, at, settled_at)
        values (v_debit, v_credit, v_move ->> 'key', v_amount,
          case v_move ->> 'move' when 'hold' then 'pending' else 'posted' end, p_task, v_move ->> 'reason', p_at,
          case v_move ->> 'move' when 'hold' then null else p_at end)
        on conflict (key) do nothing returning * into v_transfer;
      -- A repeated move: it has happened already.
      if v_transfer.id is null then continue; end if;
      select avail into v_avail from account where id = v_debit and book not like 'outside:%';
      if found and v_avail < v_amount then
        raise exception 'insufficient balance' using errcode = 'PT001',
          detail = jsonb_build_object('asset', v_move -> 'debit' ->> 'asset', 'required', v_amount::text, 'available', v_avail::text)::text;
      end if;
      if v_move ->> 'move' = 'hold' then
        perform ledger_write(v_transfer.id, v_debit, 'hold', -v_amount, v_amount, false, p_at);
      else
        perform ledger_write(v_transfer.id, v_debit, 'transfer', -v_amount, 0, true, p_at);
        perform ledger_write(v_transfer.id, v_credit, 'transfer', v_amount, 0, true, p_at);
      end if;
    else
      select * into v_transfer from transfer where key = v_move ->> 'key' for no key update;
      if not found then
        raise exception 'no such hold: %', v_move ->> 'key' using errcode = 'PT003';
      end if;
      if v_transfer.state <> 'pending' then continue; end if;
      v_amount := case v_move ->> 'move' when 'void' then 0 else coalesce((v_move ->> 'amountUnits')::numeric, v_transfer.amount) end;
      if v_amount > v_transfer.amount then
        raise exception 'a hold cannot deliver more than it holds: %', v_move ->> 'key' using errcode = 'PT003';
      end if;
      perform ledger_settle(v_transfer.id, v_transfer.debit, v_transfer.credit, v_transfer.amount, v_amount, p_at);
    end if;
  end loop;
end $$;

create function outbox_add(p_user uuid, p_task uuid, p_events jsonb, p_at timestamptz) returns bigint language plpgsql as $$
declare
  v_count integer := jsonb_array_length(p_events);
  v_seq bigint;
begin
  if v_count = 0 then return null; end if;
  -- The row lock makes commit order equal to seq order, without gaps; it is taken last in every transaction.
  insert into user_stream as s (user_id, seq) values (p_user, v_count)
    on conflict (user_id) do update set seq = s.seq + v_count returning seq into v_seq;
  insert into outbox (user_id, seq, type, task_id, subject, body, at)
    select p_user, v_seq - v_count + n, e ->> 'type', p_task, nullif(e -> 'subject', 'null'::jsonb), e -> 'data', p_at
    from jsonb_array_elements(p_events) with ordinality as x (e, n);
  return v_seq;
end $$;

create function task_accept(p jsonb) returns void language plpgsql as $$
declare
  v_at timestamptz := (p ->> 'at')::timestamptz;
  v_id uuid := (p ->> 'id')::uuid;
  v_user uuid := (p ->> 'user')::uuid;
  v_shard integer := (p ->> 'shard')::integer;
  v_seen jsonb;
begin
  insert into task (id, shard, user_id, kind, kind_version, status, state, step, data, input, priority, run_at, owner, epoch,
      lease_until, deadline, parent_id, idempotency_key, created_at, updated_at)
    values (v_id, v_shard, v_user, p ->> 'kind', (p ->> 'version')::integer, 'pending', 'accepted', p ->> 'step', p -> 'data', p -> 'input',
      (p ->> 'priority')::smallint, coalesce((p ->> 'runAt')::timestamptz, v_at), (p ->> 'owner')::uuid,
      case when p ->> 'owner' is null then 0 else 1 end,
      case when p ->> 'owner' is null then null else clock_timestamp() + make_interval(secs => (p ->> 'leaseSeconds')::float8) end,
      (p ->> 'deadline')::timestamptz, (p ->> 'parent')::uuid, p ->> 'key', v_at, v_at);
  if p ->> 'key' is not null then
    insert into idempotency (user_id, key, operation, body_hash, task_id, at)
      values (v_user, p ->> 'key', p ->> 'operation', p ->> 'hash', v_id, v_at);
  end if;
  for v_seen in select * from jsonb_array_elements(coalesce(p -> 'observe', '[]')) s order by s #>> '{account,asset}', s #>> '{account,book}' loop
    perform ledger_observe(v_seen, v_shard, v_at);
  end loop;
  if jsonb_array_length(coalesce(p -> 'moves', '[]')) > 0 then
    perform ledger_apply(p -> 'moves', v_id, v_shard, v_at);
  end if;
  perform outbox_add(v_user, v_id, p -> 'events', v_at);
end $$;

-- Commits one step if the caller still owns the task. Answers false where it does not: then nothing was written.
create function task_commit(p jsonb) returns boolean language plpgsql as $$
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
  if not found then return false; end if;

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

  if p ? 'effect' then
    insert into effect (id, task_id, step, kind, intent, signed, ext_id, status, policy_receipt, valid_until, at)
      select (e ->> 'id')::uuid, v_id, p ->> 'done', e ->> 'kind', e -> 'intent', e -> 'signed', e ->> 'extId', 'prepared',
        e ->> 'policyReceipt', (e ->> 'validUntil')::timestamptz, v_at
      from (select p -> 'effect' as e) x;
  end if;
  if p ? 'carrier' then
    insert into carrier (effect_id, n, raw, ext_id, lane_kind, chain, signer, nonce, status, at)
      select (c ->> 'effectId')::uuid, coalesce((select max(n) + 1 from carrier where effect_id = (c ->> 'effectId')::uuid), 0),
        c ->> 'raw', c ->> 'extId', c ->> 'laneKind', c ->> 'chain', c ->> 'signer', (c ->> 'nonce')::bigint, 'prepared', v_at
      from (select p -> 'carrier' as c) x;
  end if;
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

  perform outbox_add(v_task.user_id, v_id, p -> 'events', v_at);
  return true;
end $$;
