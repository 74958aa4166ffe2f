-- Locks what an admission observes and moves, before any of it is written: the user's accounts by id, then the far
-- side by id. This is the order of every other transaction of the ledger. Only needed where more than one account of
-- the user takes part; with one, the statements that follow lock in this order by themselves.
create function ledger_lock(p_seen jsonb, p_moves jsonb, p_shard integer) returns void language plpgsql as $$
declare
  v_own bigint[];
  v_far bigint[];
begin
  select array_agg(distinct ledger_account(ref, p_shard)) into v_own from (
    select s -> 'account' as ref from jsonb_array_elements(p_seen) s
    union all select m -> side from jsonb_array_elements(p_moves) m, unnest(array['debit', 'credit']) side
      where m ? side and (side = 'debit' or m ->> 'move' = 'transfer') and m -> side ->> 'book' <> 'outside') x;
  perform 1 from account where id = any(v_own) order by id for no key update;
  select array_agg(distinct ledger_account(ref, p_shard)) into v_far from (
    select jsonb_build_object('owner', s ->> 'house', 'asset', s #>> '{account,asset}', 'book', 'outside') as ref
      from jsonb_array_elements(p_seen) s join account a on a.id = ledger_account(s -> 'account', p_shard)
      where greatest((s ->> 'totalUnits')::numeric - a.avail - a.held, -a.avail) <> 0
    union all select m -> side from jsonb_array_elements(p_moves) m, unnest(array['debit', 'credit']) side
      where m ? side and (side = 'debit' or m ->> 'move' = 'transfer') and m -> side ->> 'book' = 'outside') x;
  perform 1 from account where id = any(v_far) order by id for no key update;
end $$;

create or replace function task_accept(p jsonb) returns void language plpgsql as $$
declare
  v_at timestamptz := (p ->> 'at')::timestamptz;
  v_id uuid := (p ->> 'id')::uuid;
  v_user uuid := (p ->> 'user')::uuid;
  v_shard integer := (p ->> 'shard')::integer;
  v_observed jsonb := coalesce(p -> 'observe', '[]');
  v_moves jsonb := coalesce(p -> 'moves', '[]');
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
  if jsonb_array_length(v_observed) > 1 or (jsonb_array_length(v_observed) = 1 and
      (jsonb_array_length(v_moves) > 1 or v_moves #> '{0,debit}' <> v_observed #> '{0,account}')) then
    perform ledger_lock(v_observed, v_moves, v_shard);
  end if;
  for v_seen in select * from jsonb_array_elements(v_observed) s order by s #>> '{account,asset}', s #>> '{account,book}' loop
    perform ledger_observe(v_seen, v_shard, v_at);
  end loop;
  if jsonb_array_length(v_moves) > 0 then
    perform ledger_apply(v_moves, v_id, v_shard, v_at);
  end if;
  perform outbox_add(v_user, v_id, p -> 'events', v_at);
end $$;

-- As before, and a hold that has ended one way is never taken to have ended the other way.
create or replace function ledger_apply(p_moves jsonb, p_task uuid, p_shard integer, p_at timestamptz) returns void language plpgsql as $$
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
      -- A post of nothing is a void.
      if v_transfer.state = (case when v_move ->> 'move' = 'post' and coalesce(v_move ->> 'amountUnits', '') <> '0'
          then 'voided' else 'posted' end) then
        raise exception 'the hold was % before: %', v_transfer.state, v_move ->> 'key' using errcode = 'PT003';
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
