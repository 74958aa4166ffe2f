-- Double-entry ledger. Amounts are in base units of the asset. The rules are functions of the database, so that a
-- commit that moves money is one round trip whatever it consists of.

-- Balances. They are derived from the transfers, and an audit counts them again.
create table account (
  id bigint generated always as identity primary key,
  shard smallint not null,
  -- A user, or the system account.
  owner uuid not null,
  asset text not null,
  -- Sub-account of that owner, such as the wallet, an earn position, or 'external:<n>' for money outside of the ledger.
  sub_account text not null,
  avail numeric(78, 0) not null default 0,
  -- Set aside by pending holds.
  held numeric(78, 0) not null default 0 check (held >= 0),
  -- Version counter, raised by every movement that is no hold: it detects balance snapshots that are out of date.
  version bigint not null default 0,
  -- A column of its own, because an index on balances would keep every change of them from being HOT.
  has_units boolean generated always as (avail <> 0 or held <> 0) stored,
  unique (owner, asset, sub_account),
  constraint only_external_accounts_may_be_negative check (avail >= 0 or sub_account like 'external:%')
-- Balances change in place, and no index has them: with free space that is HOT, unless an account becomes empty or ceases
-- to be. External accounts are few and change with every transfer.
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);

-- The sub-accounts in use among all that an owner ever had. In the order of bytes, as positions are in that of their ids.
create index account_in_use on account (owner, asset, sub_account collate "C") where has_units;

-- Numbers transfers in the order in which they are settled. A transaction that has taken a number holds a lock on this
-- sequence until it ends.
create sequence transfer_settled_seq;

-- Movements between two accounts. A hold is pending until it is posted or voided. A settled row is never changed: every
-- balance can be counted again from these rows.
create table transfer (
  id bigint generated always as identity primary key,
  -- Idempotency key: a repeated movement changes nothing.
  key text not null,
  debit bigint not null references account (id),
  credit bigint not null references account (id),
  amount numeric(78, 0) not null check (amount > 0),
  -- Units that reached the credit account; of a hold, the rest went back. Null while the hold is pending.
  posted numeric(78, 0) check (posted between 0 and amount),
  state text not null check (state in ('pending', 'posted', 'voided')),
  task_id uuid,
  reason text not null,
  at timestamptz not null,
  settled_at timestamptz,
  -- From transfer_settled_seq, taken by the statement that settles the transfer.
  settled_seq bigint,
  unique (key),
  constraint settled_transfer_is_complete check (
    case state when 'pending' then num_nonnulls(posted, settled_at, settled_seq) = 0
      when 'posted' then num_nulls(posted, settled_at, settled_seq) = 0 and posted > 0
      else num_nulls(posted, settled_at, settled_seq) = 0 and posted = 0 end)
);
create index transfer_of_task on transfer (task_id) where task_id is not null;
-- What was settled since a number, and the pending holds of an account, whose number is null.
create index transfer_settled on transfer (settled_seq, debit);

-- What every column of a transfer amounts to: a sum over rows changes where one of them does.
create function transfer_digest(t transfer) returns bigint language sql stable as $$
  select ('x' || encode(substr(sha256(convert_to(concat_ws(' ', t.id, t.key, t.debit, t.credit, t.amount, t.posted, t.state,
    coalesce(t.task_id::text, '-'), t.reason, extract(epoch from t.at), extract(epoch from t.settled_at), t.settled_seq),
    'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
$$;

-- How far the audit of the ledger has come. One row; its lock is held by whatever changes the tables below.
create table ledger_audit (
  singleton boolean primary key default true check (singleton),
  -- Every transfer up to this settled_seq is counted.
  counted_seq bigint not null default 0,
  -- The last account that was compared in this cycle through all accounts.
  compared_account bigint not null default 0,
  -- The next block to be read again.
  read_block bigint not null default 0
);
insert into ledger_audit default values;

-- The counted transfers of each account: what it gained less what it lost.
create table ledger_checkpoint (
  account_id bigint primary key,
  units numeric not null
) with (fillfactor = 70);

-- The counted transfers by blocks of 4096 numbers, so that a change or a deletion is found when the block is read again.
create table ledger_block (
  number bigint primary key,
  transfers integer not null,
  digest numeric not null
);

-- Sums of the checkpoints of the accounts that were compared in this cycle.
create table ledger_audit_sum (
  asset text primary key,
  units numeric not null
);

-- What the audit has found and not found corrected since.
create table ledger_discrepancy (
  what text not null,
  -- The account, asset, transfer or block.
  subject text not null,
  recorded text not null,
  counted text not null,
  found_at timestamptz not null,
  primary key (what, subject)
);

-- The external account is split into 16 by the user's shard: one hot row would serialise every user.
create function ledger_sub_account(p_ref jsonb, p_shard integer) returns text language sql immutable as $$
  select case when p_ref ->> 'subAccount' = 'external' then 'external:' || (p_shard % 16) else p_ref ->> 'subAccount' end
$$;

-- The id of an account, which is created on first use. p_ref is {"owner", "asset", "subAccount"}.
create function ledger_account(p_ref jsonb, p_shard integer) returns bigint language plpgsql as $$
declare
  v_id bigint;
  v_sub_account text := ledger_sub_account(p_ref, p_shard);
begin
  loop
    select id into v_id from account
      where owner = (p_ref ->> 'owner')::uuid and asset = p_ref ->> 'asset' and sub_account = v_sub_account;
    if found then return v_id; end if;
    insert into account (shard, owner, asset, sub_account)
      values (p_shard, (p_ref ->> 'owner')::uuid, p_ref ->> 'asset', v_sub_account)
      on conflict do nothing;
  end loop;
end $$;

-- Changes one balance.
create function ledger_write(p_account bigint, p_avail numeric, p_held numeric, p_changes_version boolean)
returns void language plpgsql as $$
begin
  update account
    set avail = avail + p_avail, held = held + p_held, version = version + (case when p_changes_version then 1 else 0 end)
    where id = p_account;
end $$;

-- What one movement changes in one balance.
create type ledger_delta as (account bigint, avail numeric, held numeric, changes_version boolean);

-- Every transaction locks accounts in this order, external ones last, so that no two wait for each other. The lock is
-- weak enough to let foreign key checks pass.
create function ledger_lock(p_accounts bigint[]) returns void language plpgsql as $$
begin
  perform 1 from account where id = any(p_accounts) order by (sub_account like 'external:%'), id for no key update;
end $$;

-- Changes balances. The locks come first, because an update has no order.
create function ledger_change(p_all ledger_delta[]) returns void language plpgsql as $$
declare
  v_ids bigint[] := array(select d.account from unnest(p_all) d);
begin
  perform ledger_lock(v_ids);
  update account a set avail = a.avail + d.avail, held = a.held + d.held, version = a.version + d.changes
    from (select d.account, sum(d.avail) as avail, sum(d.held) as held, sum(d.changes_version::integer) as changes
      from unnest(p_all) d group by d.account) d
    where a.id = any(v_ids) and a.id = d.account;
end $$;

-- The end of a hold: so many units reach the credit account, and the rest goes back.
create type ledger_settlement as (
  id bigint, debit bigint, credit bigint, amount numeric, posted numeric, at timestamptz
);

create function ledger_settle(p_all ledger_settlement[]) returns void language plpgsql as $$
begin
  if exists (select 1 from unnest(p_all) h where h.posted > h.amount or h.posted < 0) then
    raise exception 'a hold cannot deliver more than it holds' using errcode = 'PT003';
  end if;
  perform ledger_change(array(
    select (h.debit, h.amount - h.posted, -h.amount, true)::ledger_delta from unnest(p_all) h
    union all select (h.credit, h.posted, 0, true)::ledger_delta from unnest(p_all) h where h.posted > 0));
  update transfer t
    set state = case when h.posted > 0 then 'posted' else 'voided' end, posted = h.posted, settled_at = h.at,
      settled_seq = nextval('transfer_settled_seq')
    from unnest(p_all) h where t.id = any(array(select id from unnest(p_all))) and t.id = h.id;
end $$;

-- An account under its lock, and its external account: what a reading of its chain or venue adds to it, and whether that
-- reading is out of date.
create type ledger_reading as (
  n integer, id bigint, external_id bigint, avail numeric, delta numeric, is_stale boolean
);

create function ledger_system() returns uuid language sql immutable as $$
  select '00000000-0000-7000-8000-000000000000'::uuid
$$;

-- The cast lets the planner inline it.
create function ledger_external(p_shard integer) returns text language sql immutable as $$
  select 'external:' || (p_shard % 16)::text
$$;

-- The accounts that movements change.
create function ledger_accounts(p_moves jsonb, p_shard integer) returns setof bigint language sql as $$
  select ledger_account(m -> side, p_shard) from jsonb_array_elements(p_moves) m, unnest(array['debit', 'credit']) side
    where m ? side and (side = 'debit' or m ->> 'move' = 'transfer')
  union select t.debit from jsonb_array_elements(p_moves) m join transfer t on t.key = m ->> 'key'
    where m ->> 'move' in ('post', 'void')
  union select t.credit from jsonb_array_elements(p_moves) m join transfer t on t.key = m ->> 'key'
    where m ->> 'move' = 'post'
$$;

-- Applies movements of a task: transfers and holds, and the posts and voids that end holds.
create function ledger_apply(p_moves jsonb, p_task uuid, p_shard integer, p_at timestamptz)
returns void language plpgsql as $$
declare
  v_move jsonb;
  v_debit bigint;
  v_credit bigint;
  v_amount numeric;
  v_avail numeric;
  v_posts boolean;
  v_transfer transfer;
begin
  perform ledger_lock(array(select ledger_accounts(p_moves, p_shard)));
  for v_move in select * from jsonb_array_elements(p_moves) loop
    if v_move ->> 'move' in ('transfer', 'hold') then
      v_debit := ledger_account(v_move -> 'debit', p_shard);
      v_credit := ledger_account(v_move -> 'credit', p_shard);
      v_amount := (v_move ->> 'amountUnits')::numeric;
      v_posts := v_move ->> 'move' = 'transfer';
      insert into transfer (debit, credit, key, amount, posted, state, task_id, reason, at, settled_at, settled_seq)
        values (v_debit, v_credit, v_move ->> 'key', v_amount, case when v_posts then v_amount end,
          case when v_posts then 'posted' else 'pending' end, p_task, v_move ->> 'reason', p_at,
          case when v_posts then p_at end, case when v_posts then nextval('transfer_settled_seq') end)
        on conflict (key) do nothing returning * into v_transfer;
      -- A repeated movement: it is booked already.
      if v_transfer.id is null then continue; end if;
      select avail into v_avail from account where id = v_debit and sub_account not like 'external:%';
      if found and v_avail < v_amount then
        raise exception 'insufficient balance' using errcode = 'PT001', detail = jsonb_build_object(
          'asset', v_move -> 'debit' ->> 'asset', 'required', v_amount::text, 'available', v_avail::text)::text;
      end if;
      if v_posts then
        perform ledger_write(v_debit, -v_amount, 0, true);
        perform ledger_write(v_credit, v_amount, 0, true);
      else
        perform ledger_write(v_debit, -v_amount, v_amount, false);
      end if;
    else
      select * into v_transfer from transfer where key = v_move ->> 'key' for no key update;
      if not found then
        raise exception 'no such hold: %', v_move ->> 'key' using errcode = 'PT003';
      end if;
      -- A hold ends one way only. A post of zero is a void.
      if v_transfer.state = (case when v_move ->> 'move' = 'post' and coalesce(v_move ->> 'amountUnits', '') <> '0'
          then 'voided' else 'posted' end) then
        raise exception 'the hold was % before: %', v_transfer.state, v_move ->> 'key' using errcode = 'PT003';
      end if;
      if v_transfer.state <> 'pending' then continue; end if;
      v_amount := case v_move ->> 'move'
        when 'void' then 0 else coalesce((v_move ->> 'amountUnits')::numeric, v_transfer.amount) end;
      if v_amount > v_transfer.amount then
        raise exception 'a hold cannot deliver more than it holds: %', v_move ->> 'key' using errcode = 'PT003';
      end if;
      perform ledger_settle(array[
        (v_transfer.id, v_transfer.debit, v_transfer.credit, v_transfer.amount, v_amount, p_at)::ledger_settlement]);
    end if;
  end loop;
end $$;
