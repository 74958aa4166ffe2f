-- What chats may start by themselves in 24 hours. Null: nothing.
alter table policy add column chat_per_day_micros bigint check (chat_per_day_micros >= 0);

-- It is raised as the other limits are raised.
alter table policy_change drop constraint policy_change_field_check;
alter table policy_change add constraint policy_change_field_check check (field in
  ('perTransactionMicros', 'perDayMicros', 'chatPerDayMicros', 'chains', 'tokens', 'recipients', 'approvalAboveMicros'));
alter table policy_change drop constraint policy_change_form;
alter table policy_change add constraint policy_change_form check (case
  when field in ('perTransactionMicros', 'perDayMicros', 'chatPerDayMicros') then micros is not null and entries is null
  when field = 'approvalAboveMicros' then entries is null
  when field = 'tokens' then micros is null
  else micros is null and entries is not null end);

-- The tasks that chats have started by themselves. What such a task reserves of the limits counts against the limit of
-- chats, too.
create table policy_chat_spend (
  task_id uuid primary key,
  user_id uuid not null,
  at timestamptz not null
);
create index policy_chat_spend_recent on policy_chat_spend (user_id, at);
create index policy_chat_spend_age on policy_chat_spend (at);

-- What counts against the limit of chats for a day that began at p_since, without one task.
create function policy_chat_spent(p_user uuid, p_since timestamptz, p_except uuid) returns numeric language sql stable as $$
  select coalesce(sum(s.usd_micros), 0) from policy_chat_spend c join policy_spend s on s.task_id = c.task_id
    where c.user_id = p_user and c.at > p_since and s.state = 'reserved' and c.task_id is distinct from p_except
$$;

-- The limit of chats, of a task that a chat starts by itself. Null: somebody else has asked for it.
alter type task_promise add attribute chat_per_day bigint;

-- Under the same locks a chat starts only what counts, up to its own limit.
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
        or x.counted + policy_chat_spent(x.user_id, x.created_at - interval '24 hours', null) > x.chat_per_day)));
  return v_refused;
end $$;
