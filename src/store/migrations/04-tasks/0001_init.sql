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
  owner uuid,
  -- Orders that the task arms when it completes: they count against the limit of the user from its acceptance on.
  orders integer not null default 0
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

-- The latest task of each request that may not be repeated unnoticed: callers that forget their keys would pay twice.
-- Rows older than the window of the check are deleted.
create table recent_request (
  user_id uuid not null,
  -- Of the operation and its canonical input.
  request_hash text not null,
  task_id uuid not null,
  at timestamptz not null,
  primary key (user_id, request_hash)
);
create index recent_request_age on recent_request (at);

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

-- Creates a task when a price crosses the trigger: limit orders, hooks, and the exits at the venue that the gateway holds.
create table trigger_order (
  id uuid primary key,
  user_id uuid not null,
  kind text not null,
  market text not null,
  -- Fires at or below the trigger price, or at or above it.
  direction text not null check (direction in ('lte', 'gte')),
  trigger_price numeric not null,
  -- Orders whose price is decided by one quote: trade and size class. Null: the price of the market decides.
  quote_key text,
  -- The trigger price follows the highest price at this fraction below it.
  trail numeric check (trail > 0 and trail < 1),
  -- Highest price since the order was armed.
  high_water numeric,
  -- When one order of a group fires, the others are cancelled, unless it sells only a part.
  oco_group uuid,
  ends_group boolean not null default true,
  input jsonb not null,
  -- An order waits until the entry order that it protects has filled.
  status text not null check (status in ('waiting', 'armed', 'fired', 'cancelled', 'expired')),
  -- The order of its group that fired. Where that one is armed again, this one is, too.
  cancelled_by uuid,
  -- Counts the tasks that it created.
  attempts integer not null default 0,
  -- Client order id of the entry order.
  entry_cloid text,
  -- The task that asked for this order.
  source_task_id uuid,
  -- The task that it created last.
  task_id uuid,
  expires_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint trailing_order_has_a_high_water check ((trail is null) = (high_water is null))
-- Few live rows have many dead ones: a price that rises moves the trailing orders of its market.
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_analyze_scale_factor = 0.02);
create index trigger_armed on trigger_order (market, direction, trigger_price) where status = 'armed';
create index trigger_quoted on trigger_order (market, quote_key, direction, trigger_price)
  where status = 'armed' and quote_key is not null;
create index trigger_trailing on trigger_order (market, high_water) where status = 'armed' and trail is not null;
create index trigger_waiting on trigger_order (market) where status = 'waiting';
create index trigger_of_entry on trigger_order (entry_cloid) where status = 'waiting';
create index trigger_open on trigger_order (user_id, created_at) where status in ('waiting', 'armed');
create index trigger_of_user on trigger_order (user_id, kind, id desc);
create index trigger_of_status on trigger_order (user_id, kind, status, id desc);
create index trigger_oco on trigger_order (oco_group) where oco_group is not null;
create index trigger_cancelled_by on trigger_order (cancelled_by) where cancelled_by is not null;
create index trigger_of_task on trigger_order (task_id) where status = 'fired';
create index trigger_expiry on trigger_order (expires_at)
  where expires_at is not null and status in ('waiting', 'armed');
create index trigger_ended on trigger_order (updated_at) where status in ('fired', 'cancelled', 'expired');

-- Orders of a user that a quote decides and that may fire: those that wait, those whose task goes on with the ones that it
-- cancelled, since all of these may be armed again, and those that the tasks of the user will arm.
create function orders_open(p_user uuid) returns integer language sql stable set enable_seqscan = off as $$
  with running as materialized (
    select f.id from task_queue live join trigger_order f on f.task_id = live.task_id
      where live.user_id = p_user and f.status = 'fired' and f.quote_key is not null)
  select ((select count(*) from trigger_order
        where user_id = p_user and status in ('waiting', 'armed') and quote_key is not null)
    + (select count(*) from running)
    + (select count(*) from trigger_order s join running r on s.cancelled_by = r.id where s.status = 'cancelled')
    + (select coalesce(sum(orders), 0) from task_queue where user_id = p_user))::integer
$$;

-- Markets with open orders whose names begin with the prefix, each found by one step in an index: the number of orders does
-- not matter.
create function trigger_markets(p_prefix text, p_max integer) returns table (market text, waiting boolean)
language sql stable as $$
  with recursive armed as (
    (select t.market from trigger_order t where t.status = 'armed' order by t.market limit 1)
    union all
    select (select t.market from trigger_order t where t.status = 'armed' and t.market > a.market
      order by t.market limit 1) from armed a where a.market is not null),
  pending as (
    (select t.market from trigger_order t where t.status = 'waiting' order by t.market limit 1)
    union all
    select (select t.market from trigger_order t where t.status = 'waiting' and t.market > p.market
      order by t.market limit 1) from pending p where p.market is not null)
  select m.market, bool_or(m.waiting) from (
    select a.market, false as waiting from armed a union all select p.market, true from pending p) m
  where starts_with(m.market, p_prefix) group by m.market order by m.market limit p_max
$$;

-- Quotes that could fire orders at the given prices of their markets, with the order of each that is nearest on either
-- side, and of those who have one the user with the fewest orders here, whose turn comes soonest. Takes at most p_max
-- orders on each side of a market, and p_each of a user, from the p_read nearest ones: few users do not fill a side.
create function trigger_quotes_near(p_markets text[], p_low numeric[], p_high numeric[], p_except text[], p_max integer,
  p_each integer, p_read integer)
returns table (market text, quote_key text, lte numeric, gte numeric, user_id uuid) language sql stable
set enable_seqscan = off set enable_bitmapscan = off as $$
  select n.market, n.quote_key, max(n.trigger_price) filter (where n.direction = 'lte'),
    min(n.trigger_price) filter (where n.direction = 'gte'), (array_agg(n.user_id order by n.orders, n.user_id))[1]
  from (select o.*, count(*) over (partition by o.user_id) as orders
  from unnest(p_markets, p_low, p_high) m (market, low, high), lateral (
    (select b.* from (select t.*, row_number() over (partition by t.user_id order by t.trigger_price desc) as nth from (
      select a.market, a.quote_key, a.direction, a.trigger_price, a.user_id from trigger_order a
        where a.market = m.market and a.status = 'armed' and a.direction = 'lte' and a.trigger_price >= m.low
          and a.quote_key is not null and a.quote_key <> all(p_except)
        order by a.trigger_price desc limit p_read) t) b
      where b.nth <= p_each order by b.trigger_price desc limit p_max)
    union all
    (select b.* from (select t.*, row_number() over (partition by t.user_id order by t.trigger_price) as nth from (
      select a.market, a.quote_key, a.direction, a.trigger_price, a.user_id from trigger_order a
        where a.market = m.market and a.status = 'armed' and a.direction = 'gte' and a.trigger_price <= m.high
          and a.quote_key is not null and a.quote_key <> all(p_except)
        order by a.trigger_price limit p_read) t) b
      where b.nth <= p_each order by b.trigger_price limit p_max)) o) n
  group by n.market, n.quote_key
$$;

-- Which instance checks the triggers of a market.
create table market_lease (
  market text primary key,
  owner uuid,
  -- Fencing token, raised when another instance takes over.
  epoch integer not null default 0,
  lease_until timestamptz,
  -- When its price was last known: without a recent one nothing fires.
  priced_at timestamptz
-- Each live row is updated every second.
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.05);

-- Ids of armed orders that a price crossed, those that it passed furthest first. Of two prices that agree, the one counts
-- that fires less. Orders of users may be chosen or left out.
create function trigger_crossed(p_market text, p_quote_key text, p_high numeric, p_low numeric, p_at timestamptz,
  p_only uuid[], p_except uuid[], p_max integer) returns table (id uuid, user_id uuid, oco_group uuid) language plpgsql
-- The planner expects the condition on the price to match a third of the rows; mostly it matches none.
set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  if p_quote_key is null then
    return query with below as materialized (
      select * from trigger_order where market = p_market and status = 'armed' and quote_key is null
        and direction = 'lte' and trigger_price >= p_high and (expires_at is null or expires_at > p_at)
        and (p_only is null or user_id = any(p_only)) and user_id <> all(p_except)
      order by trigger_price desc limit p_max for update skip locked),
    above as materialized (
      select * from trigger_order where market = p_market and status = 'armed' and quote_key is null
        and direction = 'gte' and trigger_price <= p_low and (expires_at is null or expires_at > p_at)
        and (p_only is null or user_id = any(p_only)) and user_id <> all(p_except)
      order by trigger_price limit p_max for update skip locked)
    select b.id, b.user_id, b.oco_group from below b union all select a.id, a.user_id, a.oco_group from above a;
  else
    return query with below as materialized (
      select * from trigger_order where market = p_market and status = 'armed' and quote_key = p_quote_key
        and direction = 'lte' and trigger_price >= p_high and (expires_at is null or expires_at > p_at)
        and (p_only is null or user_id = any(p_only)) and user_id <> all(p_except)
      order by trigger_price desc limit p_max for update skip locked),
    above as materialized (
      select * from trigger_order where market = p_market and status = 'armed' and quote_key = p_quote_key
        and direction = 'gte' and trigger_price <= p_low and (expires_at is null or expires_at > p_at)
        and (p_only is null or user_id = any(p_only)) and user_id <> all(p_except)
      order by trigger_price limit p_max for update skip locked)
    select b.id, b.user_id, b.oco_group from below b union all select a.id, a.user_id, a.oco_group from above a;
  end if;
end $$;

-- Fires armed orders, of which no two are of one group, and cancels the others of their groups. Returns all of them.
create function trigger_fire(p_ids uuid[], p_at timestamptz) returns setof trigger_order language sql as $$
  with fired as (
    update trigger_order set status = 'fired', attempts = attempts + 1, updated_at = p_at
      where id = any(p_ids) and status = 'armed' returning *),
  siblings as (
    update trigger_order t set status = 'cancelled', cancelled_by = f.id, updated_at = p_at from fired f
      where t.oco_group = f.oco_group and f.ends_group and t.id <> f.id and t.status in ('waiting', 'armed') returning t.*)
  select * from fired union all select * from siblings
$$;

-- Fires what a price crossed, if this instance still has the lease of the market.
create function trigger_fire_crossed(p_market text, p_owner uuid, p_epoch integer, p_quote_key text, p_high numeric,
  p_low numeric, p_at timestamptz, p_except uuid[], p_max integer, p_wait_ms integer) returns setof trigger_order
language plpgsql as $$
begin
  perform wait_for_locks(p_wait_ms);
  perform 1 from market_lease where market = p_market and owner = p_owner and epoch = p_epoch for no key update;
  if not found then return; end if;
  return query select f.* from trigger_fire(array(
    select distinct on (coalesce(c.oco_group, c.id)) c.id
      from trigger_crossed(p_market, p_quote_key, p_high, p_low, p_at, null, p_except, p_max) c), p_at) f;
end $$;

-- What tasks have signed, before it is sent: an effect with its first transaction, or a further transaction of one.
create type new_signature as (task_id uuid, signed jsonb, at timestamptz);

create function signatures_store(p_all new_signature[]) returns void language plpgsql as $$
begin
  insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, valid_until, at)
    select (e ->> 'id')::uuid, x.task_id, x.signed ->> 'done', e ->> 'kind', e -> 'intent', e -> 'signed',
      e ->> 'externalId', 'prepared', e ->> 'policyReceipt', (e ->> 'validUntil')::timestamptz, x.at
    from unnest(p_all) x, lateral (select x.signed -> 'effect' as e) signed where x.signed ? 'effect';
  insert into tx_attempt (effect_id, n, raw, external_id, nonce_kind, chain, signer, nonce, status, at)
    select (c ->> 'effectId')::uuid,
      coalesce((select max(n) + 1 from tx_attempt where effect_id = (c ->> 'effectId')::uuid), 0),
      c ->> 'raw', c ->> 'externalId', c ->> 'nonceKind', c ->> 'chain', c ->> 'signer', (c ->> 'nonce')::bigint,
      'prepared', x.at
    from unnest(p_all) x, lateral (select x.signed -> 'txAttempt' as c) signed where x.signed ? 'txAttempt';
end $$;

-- Takes a nonce in a transaction of its own, of a sequence that may have gaps; null where there is no such sequence. Its
-- commit need not be on the disk: whatever uses the nonce is committed after it, so a nonce that was used is never lost.
create function nonce_take_alone(p_kind text, p_chain text, p_signer text, p_min bigint)
returns bigint language plpgsql as $$
declare
  v_nonce bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  update nonce_sequence set next = greatest(next, p_min) + 1
    where kind = p_kind and chain = p_chain and signer = p_signer returning next - 1 into v_nonce;
  return v_nonce;
end $$;

-- Plans of the functions below. Each of them reads its rows by keys, which every statement names in an array: so one plan,
-- made once per connection, is right for every number of rows, also where it was made while its tables were empty. A plan
-- for each call costs more than the call. A scan of a whole table is never right here.

-- One promise, as task_accept reads it from its array. What a promise does not use is null.
create type task_promise as (
  -- Its place in the array.
  n integer,
  id uuid,
  shard smallint,
  user_id uuid,
  parent_id uuid,
  -- Key of the request. A request without one is given one, which guards the repeat of a lost reply.
  key text,
  operation text,
  hash text,
  idempotency_key text,
  -- Hash of a request that is refused as the duplicate of one since that time, unless its caller wants it twice.
  request_hash text,
  duplicates_since timestamptz,
  kind text,
  kind_version integer,
  priority smallint,
  input jsonb,
  data jsonb,
  step text,
  status text,
  state text,
  run_at timestamptz,
  deadline timestamptz,
  -- The instance that runs the task at once.
  owner uuid,
  created_at timestamptz,
  updated_at timestamptz,
  -- The grant of the policy: the version of the limits, what counts against them, and what of it was signed.
  policy_version integer,
  counted bigint,
  authorized bigint,
  per_day bigint,
  policy_chain text,
  is_exit boolean,
  is_exempt boolean,
  -- What the transaction may cost its sponsor.
  gas_chain text,
  gas_day date,
  gas_wei numeric,
  gas_budget numeric,
  -- What is held, of an account of the user as it was read.
  asset text,
  sub_account text,
  amount numeric,
  seen_total numeric,
  seen_version bigint,
  reason text,
  hold_key text,
  -- Orders that the task will arm, and how many of them a user may have.
  orders integer,
  orders_max integer,
  -- What the first step has signed.
  signed jsonb,
  -- New rows of the feature, by table.
  rows jsonb,
  events jsonb
);

-- Limits how long the rest of the transaction waits for each lock; null changes nothing.
create function wait_for_locks(p_ms integer) returns void language plpgsql as $$
begin
  if p_ms is not null then perform set_config('lock_timeout', p_ms::text, true); end if;
end $$;

create function task_promises_without(p_all task_promise[], p_refused integer[]) returns task_promise[]
language sql immutable as $$
  select array_agg(x order by x.user_id, x.n) from unnest(p_all) x where x.n <> all(p_refused)
$$;

-- The earlier task of each promise that repeats a recent request, by its place. A task that executed nothing is repeated
-- freely. The lock lets one of several equal requests pass, on any instance.
create function duplicates_of(p_all task_promise[]) returns jsonb language plpgsql as $$
begin
  perform pg_advisory_xact_lock(l.id) from (
    select distinct hashtextextended(x.user_id || x.request_hash, 0) as id from unnest(p_all) x
      where x.request_hash is not null order by 1) l;
  return (select jsonb_object_agg(x.n, r.task_id) from unnest(p_all) x
    join recent_request r on r.user_id = x.user_id and r.request_hash = x.request_hash
    where r.at > x.duplicates_since
      and not exists (select from task t where t.id = r.task_id and t.outcome = 'not_executed'));
end $$;

-- Holds what promises spend, and books the balances that they have read, against the external accounts.
create function task_hold(p_all task_promise[], p_accounts ledger_reading[]) returns void language plpgsql as $$
begin
  update account a set avail = a.avail + r.delta - x.amount, held = a.held + x.amount
    from unnest(p_all) x join unnest(p_accounts) r on r.n = x.n
    where a.id = any(array(select id from unnest(p_accounts))) and a.id = r.id;
  if exists (select 1 from unnest(p_all) x join unnest(p_accounts) r on r.n = x.n where r.delta <> 0) then
    perform ledger_change(array_agg((r.external_id, -r.delta, 0, false)::ledger_delta))
      from unnest(p_all) x join unnest(p_accounts) r on r.n = x.n where r.delta <> 0;
    insert into transfer (debit, credit, key, amount, posted, state, reason, at, settled_at, settled_seq)
      select case when r.delta > 0 then r.external_id else r.id end,
        case when r.delta > 0 then r.id else r.external_id end,
        'balance_snapshot:' || r.id || ':' || gen_random_uuid(), abs(r.delta), abs(r.delta), 'posted',
        'balance_snapshot', x.created_at, x.created_at, nextval('transfer_settled_seq')
      from unnest(p_all) x join unnest(p_accounts) r on r.n = x.n where r.delta <> 0;
  end if;
  insert into transfer (debit, credit, key, amount, state, task_id, reason, at)
    select r.id, r.external_id, x.hold_key, x.amount, 'pending', x.id, x.reason, x.created_at
    from unnest(p_all) x join unnest(p_accounts) r on r.n = x.n where x.amount > 0;
end $$;

-- Promises whose orders would be more than their user may have, with the number of open ones. The limits of their users
-- are locked until the end of the transaction, so that of several instances one counts after the other.
create function orders_refused(p_all task_promise[]) returns jsonb language plpgsql as $$
declare
  v_refused jsonb;
begin
  perform policy_lock(x.user_id, x.created_at)
    from (select * from unnest(p_all) where orders is not null order by user_id) x;
  select jsonb_object_agg(o.n, o.open) into v_refused
    from (select x.n, x.orders, x.orders_max, orders_open(x.user_id) as open
      from unnest(p_all) x where x.orders is not null) o
    where o.open + o.orders > o.orders_max;
  return v_refused;
end $$;

-- Accepts promises, each one whole or not at all, and none because of another. Returns a verdict about each: 'accepted'
-- with the number of its last event, or why it is refused: key_taken, policy, orders, gas, stale or short. An array has at most
-- one promise of a user.
-- Locks come before decisions, and decisions before writes. They are taken in the order of every transaction: keys, tasks
-- by id, limits by user, gas by user, own accounts by id, external accounts by id, sums of limits by user, nonce
-- sequences, numbers of events by user. New rows of tasks are known to no other transaction.
create function task_accept(p jsonb, p_wait_ms integer) returns table (n integer, verdict text, detail jsonb, last bigint)
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
      bool_or(x.asset is not null), bool_or(x.counted is not null), bool_or(x.signed is not null), bool_or(x.rows is not null), bool_or(x.orders is not null)
    into v_all, v_users, v_has_key, v_has_request, v_has_entry, v_has_gas, v_has_hold, v_has_spend, v_has_signature, v_has_rows,
      v_has_orders
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

-- Reserves what a task spends whose acceptance did not know it yet: holds the units, and charges the gas. Returns why it is
-- refused, in the words of task_accept, or 'reserved'. The task is locked. A task with a second transaction is charged
-- again, once the cost of the first one is final.
create function task_reserve(p jsonb) returns table (verdict text, detail jsonb) language plpgsql as $$
declare
  v_all task_promise[] := array(select x from jsonb_populate_record(null::task_promise, p) x);
  v_used jsonb;
  v_accounts ledger_reading[];
begin
  if exists (select from unnest(v_all) x where x.gas_wei is not null) then
    v_used := sponsor_refused(v_all);
    if v_used is not null then
      return query select 'gas', jsonb_build_object('used', u.value) from jsonb_each_text(v_used) u;
      return;
    end if;
  end if;
  v_accounts := task_read_accounts(v_all);
  if exists (select from unnest(v_accounts) r where r.is_stale) then
    return query select 'stale', null::jsonb;
    return;
  end if;
  if exists (select from unnest(v_all) x join unnest(v_accounts) r on r.n = x.n where x.amount > r.avail + r.delta) then
    return query select 'short', jsonb_build_object('required', x.amount::text, 'available', (r.avail + r.delta)::text)
      from unnest(v_all) x join unnest(v_accounts) r on r.n = x.n;
    return;
  end if;
  perform task_hold(v_all, v_accounts);
  update sponsor_day d set wei = d.wei + x.gas_wei from unnest(v_all) x
    where d.user_id = x.user_id and d.chain_id = x.gas_chain and d.day = x.gas_day;
  insert into sponsor_charge (task_id, user_id, chain_id, day, wei)
    select x.id, x.user_id, x.gas_chain, x.gas_day, x.gas_wei from unnest(v_all) x where x.gas_wei is not null
    on conflict (task_id) do update
      set chain_id = excluded.chain_id, day = excluded.day, wei = excluded.wei, is_final = false
      where sponsor_charge.is_final;
  if exists (select from unnest(v_all) x where x.gas_wei is not null and not exists (select from sponsor_charge c
      where c.task_id = x.id and c.chain_id = x.gas_chain and c.wei = x.gas_wei and not c.is_final)) then
    raise exception 'the first transaction of a task is charged still';
  end if;
  return query select 'reserved', null::jsonb;
end $$;

-- Locks the accounts of promises, after those of them and external ones that are missing were created, and reads them.
create function task_read_accounts(p_all task_promise[]) returns ledger_reading[] language plpgsql as $$
declare
  v_accounts ledger_reading[];
  v_owners uuid[] := array(select x.user_id from unnest(p_all) x where x.asset is not null);
begin
  insert into account (shard, owner, asset, sub_account)
    select distinct on (o.owner, o.asset, o.sub_account) x.shard, o.owner, o.asset, o.sub_account
      from unnest(p_all) x, lateral (values (x.user_id, x.asset, x.sub_account),
        (ledger_system(), x.asset, ledger_external(x.shard))) o (owner, asset, sub_account)
      where x.asset is not null and not exists (select 1 from account a
        where a.owner = o.owner and a.asset = o.asset and a.sub_account = o.sub_account)
      order by o.owner, o.asset, o.sub_account
    on conflict do nothing;
  select array_agg((o.n, o.id, o.external_id, o.avail,
      case when o.seen_total is null then 0 else greatest(o.seen_total - o.avail - o.held, -o.avail) end,
      coalesce(o.version <> o.seen_version, false))::ledger_reading) into v_accounts
    from (select x.n, a.id, e.id as external_id, a.avail, a.held, a.version, x.seen_total, x.seen_version
      from unnest(p_all) x join account a on a.owner = x.user_id and a.asset = x.asset and a.sub_account = x.sub_account
      join account e on e.owner = ledger_system() and e.asset = x.asset and e.sub_account = ledger_external(x.shard)
      where a.owner = any(v_owners) order by a.id for no key update of a) o;
  return v_accounts;
end $$;

-- Stores what accepted promises have signed within their transaction, and appends their events.
create function task_accept_complete(p jsonb, p_wait_ms integer) returns table (n integer, last bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
as $$
begin
  perform wait_for_locks(p_wait_ms);
  perform signatures_store(array(select (x.id, x.signed, x.at)::new_signature
    from jsonb_to_recordset(p) x (id uuid, at timestamptz, signed jsonb)));
  return query select * from user_events_append(
    array(select (x.n, x.user_id, x.id, x.events, x.at)::new_user_events
      from jsonb_to_recordset(p) x (n integer, user_id uuid, id uuid, events jsonb, at timestamptz)));
end $$;

-- The commit of one step, as task_step reads it from its array. What a step does not change is null.
create type task_change as (
  -- Its place in the array.
  n integer,
  id uuid,
  user_id uuid,
  shard smallint,
  -- As the caller read the task.
  version integer,
  at timestamptz,
  status text,
  state text,
  outcome text,
  step text,
  attempts integer,
  data jsonb,
  result jsonb,
  error jsonb,
  -- Leaves the task to the next claim after this time.
  parked_until timestamptz,
  -- Units of the task's hold that were delivered.
  spent numeric,
  moves jsonb,
  effects jsonb,
  signed jsonb,
  events jsonb
);

create type effect_update as (id uuid, task_id uuid, status text, proof jsonb, attempt text);

-- Commits steps, each one if nobody has claimed or changed its task since the caller read it. Returns one row for each
-- that was committed, with the number of its last event. A task that ends returns what is left of its holds; one that
-- executed nothing returns what it reserved of limits and gas, too. Locks are taken in the order of task_accept.
create function task_step(p jsonb, p_wait_ms integer) returns table (n integer, last bigint) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
as $$
#variable_conflict use_column
declare
  v_all task_change[];
  v_ids uuid[];
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
        -- A stored effect outweighs a cancel request.
        and (not t.cancel_requested or x.status = 'cancelled' or exists
          (select 1 from effect where task_id = t.id and effect.status not in ('dropped', 'rejected')))
      returning t.id)
  select array_agg(id) into v_ids from written;
  if v_ids is null then return; end if;
  if cardinality(v_ids) < cardinality(v_all) then
    v_all := array(select x from unnest(v_all) x where x.id = any(v_ids) order by x.id);
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

-- Ends the hold of each task that has spent, and every hold of a task that has ended. What was not spent goes back.
create function task_settle(p_all task_change[], p_ids uuid[]) returns void language plpgsql as $$
declare
  v_holds ledger_settlement[];
begin
  select array_agg((h.id, h.debit, h.credit, h.amount, case when h.key = x.id || ':spend' then coalesce(x.spent, 0) else 0 end,
      x.at)::ledger_settlement) into v_holds
    from unnest(p_all) x join transfer h on h.task_id = x.id and h.state = 'pending'
    where h.task_id = any(p_ids) and (x.status <> 'running' or (x.spent is not null and h.key = x.id || ':spend'));
  if v_holds is not null then perform ledger_settle(v_holds); end if;
  if exists (select 1 from unnest(p_all) x where x.spent > 0 and not exists
      (select 1 from transfer h where h.task_id = x.id and h.key = x.id || ':spend' and h.posted = x.spent)) then
    raise exception 'a task has spent what it does not hold' using errcode = 'PT003';
  end if;
end $$;

-- Stores what became of effects, and of their transactions.
create function effects_update(p_all task_change[]) returns void language plpgsql as $$
declare
  v_all effect_update[];
  v_ids uuid[];
begin
  select array_agg((u ->> 'effectId', x.id, u ->> 'status', u -> 'proof', u ->> 'attemptExternalId')::effect_update),
      array_agg((u ->> 'effectId')::uuid) into v_all, v_ids from unnest(p_all) x, jsonb_array_elements(x.effects) u;
  update effect e set status = u.status, proof = coalesce(u.proof, e.proof) from unnest(v_all) u
    where e.id = any(v_ids) and e.id = u.id and e.task_id = u.task_id and e.status not in ('confirmed', 'rejected', 'dropped');
  update tx_attempt c set status = case when u.status <> 'confirmed' then u.status
      when c.external_id = u.attempt then 'confirmed' else 'replaced' end
    from unnest(v_all) u
    where c.effect_id = any(v_ids) and c.effect_id = u.id
      and (u.status in ('confirmed', 'dropped') or (u.status = 'sent' and c.status = 'prepared'));
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
