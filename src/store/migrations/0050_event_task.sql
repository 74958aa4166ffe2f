-- Facts that no step of a task wrote may still belong to a task: a fill is the fill of the task that placed its order.

create or replace function outbox_add(p_user uuid, p_task uuid, p_events jsonb, p_at timestamptz) returns bigint language plpgsql as $$
declare
  v_count integer := jsonb_array_length(p_events);
  v_seq bigint;
begin
  if v_count = 0 then return null; end if;
  -- The row lock makes commit order equal to seq order, without gaps; it is taken last in every transaction.
  insert into user_stream as s (user_id, seq) values (p_user, v_count)
    on conflict (user_id) do update set seq = s.seq + v_count returning seq into v_seq;
  insert into outbox (user_id, seq, type, task_id, subject, body, at)
    select p_user, v_seq - v_count + n, e ->> 'type', coalesce(p_task, (e ->> 'taskId')::uuid), nullif(e -> 'subject', 'null'::jsonb),
      e -> 'data', p_at
    from jsonb_array_elements(p_events) with ordinality as x (e, n);
  return v_seq;
end $$;
