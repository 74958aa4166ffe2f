-- The kill switch of a person stops the agents that are linked to the account, too.
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
      or (x.counted > 0 and x.counted + policy_spent(x.user_id, x.created_at - interval '24 hours') > x.per_day));
  return v_refused;
end $$;
