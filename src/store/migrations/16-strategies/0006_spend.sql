-- What strategies spend of their budgets. The statement that accepts an order counts it under the lock of the limits of its
-- user, as it counts the limits themselves, so that no number of runs exceeds a budget.

-- The open orders of strategies, each with the most that it may be worth. The commit that records what an order was really
-- worth deletes its row.
create table strategy_spend (
  task_id uuid primary key,
  strategy_id uuid not null,
  usd_micros bigint not null check (usd_micros >= 0),
  at timestamptz not null
);
create index strategy_spend_of_strategy on strategy_spend (strategy_id);

-- What the ended orders of each strategy were worth together.
create table strategy_spend_total (
  strategy_id uuid primary key,
  usd_micros bigint not null check (usd_micros >= 0)
);

-- What counts against the budget of a strategy: ended orders by what they were worth, open ones by what they reserve.
create function strategy_spent(p_strategy uuid) returns numeric language sql stable as $$
  select coalesce((select usd_micros from strategy_spend_total where strategy_id = p_strategy), 0)
    + coalesce((select sum(case when s.state = 'released' then 0 else greatest(o.usd_micros, coalesce(s.usd_micros, 0)) end)
        from strategy_spend o left join policy_spend s on s.task_id = o.task_id where o.strategy_id = p_strategy), 0)
$$;

-- Counts the orders that have ended by what was filled, and no longer by what they reserved. An order that rests still may
-- be filled after its task, until the venue has ended it and its fills are imported.
create function strategy_spend_settle(p_strategy uuid, p_at timestamptz) returns void language plpgsql as $$
begin
  with ended as materialized (
    select o.task_id, case
        when t.outcome = 'not_executed' then 0
        when t.kind <> 'perp_open' or t.id is null then o.usd_micros
        when (t.result ->> 'resting')::boolean then (select coalesce(ceil(sum(abs(f.signed_size) * f.price) * 1000000), 0)
          from venue_order v join venue_fill f on f.cloid = v.cloid and f.user_id = v.user_id
          where v.cloid = t.result ->> 'cloid')
        when t.result ->> 'avg_price' is not null
          then ceil((t.result ->> 'filled_size')::numeric * (t.result ->> 'avg_price')::numeric * 1000000)
        when t.result is not null then 0
        else o.usd_micros end as usd_micros
    from strategy_spend o left join task t on t.id = o.task_id
    where o.strategy_id = p_strategy and (t.id is null or t.completed_at is not null)
      and (not coalesce((t.result ->> 'resting')::boolean, false) or exists (
        select from venue_order v where v.cloid = t.result ->> 'cloid' and v.ended_at < p_at - interval '5 minutes'))
    for update of o skip locked),
  deleted as (delete from strategy_spend where task_id = any(array(select task_id from ended)))
  insert into strategy_spend_total as s (strategy_id, usd_micros)
    select p_strategy, sum(usd_micros) from ended having count(*) > 0
    on conflict (strategy_id) do update set usd_micros = s.usd_micros + excluded.usd_micros;
end $$;

-- The strategy that a promise spends for, and its budget in micro-dollars. Null: no strategy, or one without a budget.
alter type task_promise add attribute strategy_id uuid;
alter type task_promise add attribute budget bigint;

-- Under the same locks a strategy starts only what its budget still allows.
create or replace function policy_refused(p_all task_promise[]) returns integer[] language plpgsql as $$
declare
  v_refused integer[];
  v_users uuid[] := array(select x.user_id from unnest(p_all) x where not x.is_exit);
begin
  insert into policy (user_id, updated_at)
    select x.user_id, x.created_at from unnest(p_all) x
      where not x.is_exit and not exists (select 1 from policy p where p.user_id = x.user_id)
      order by x.user_id
    on conflict do nothing;
  perform 1 from policy where user_id = any(v_users) order by user_id for update;
  select array_agg(x.n) into v_refused from unnest(p_all) x join policy l on l.user_id = x.user_id
    where l.user_id = any(v_users) and not x.is_exit and (
      l.version <> x.policy_version
      or exists (select 1 from kill_switch k where (k.scope = 'global' and k.subject = '')
        or (k.scope = 'user' and k.subject = x.user_id::text)
        or (k.scope = 'user' and k.subject = (select g.person_id::text from agent_link g where g.user_id = x.user_id))
        or (k.scope = 'venue' and k.subject = x.user_id || ':' || x.policy_chain and not x.is_exempt))
      or (x.counted > 0 and x.counted + policy_spent(x.user_id, x.created_at - interval '24 hours') > x.per_day)
      or (x.chat_per_day is not null and (x.counted <= 0
        or x.counted + policy_chat_spent(x.user_id, x.created_at - interval '24 hours', null) > x.chat_per_day))
      or (x.budget is not null and x.counted > 0 and x.counted + strategy_spent(x.strategy_id) > x.budget));
  return v_refused;
end $$;
