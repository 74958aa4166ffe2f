-- The event log of each user, which streams and lists of notifications read.

-- The number of the last event of each user.
create table user_event_seq (
  user_id uuid primary key,
  seq bigint not null
-- Each event updates one narrow row: free space keeps the updates within the page (HOT), and vacuum comes after few of
-- them, so that the row that every commit locks stays short to find.
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);

-- Events by user, numbered from 1 without gaps. Old rows are deleted by age.
create table user_event (
  user_id uuid not null,
  seq bigint not null,
  type text not null,
  -- Null for events that belong to no task.
  task_id uuid,
  -- The record that the event is about, as {"kind", "id"}.
  subject jsonb,
  body jsonb not null,
  at timestamptz not null,
  primary key (user_id, seq)
-- Never updated, deleted by age. A fifth of a log of millions is too long to wait: dead entries at its old end are what
-- the next deletion reads first.
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
create index user_event_age on user_event (at);

-- Appends events of one user and returns the number of the last one; null without events. An event may name its task
-- itself, where p_task is null.
create function user_event_append(p_user uuid, p_task uuid, p_events jsonb, p_at timestamptz)
returns bigint language plpgsql as $$
declare
  v_count integer := jsonb_array_length(p_events);
  v_seq bigint;
begin
  if v_count = 0 then return null; end if;
  -- The row lock makes commit order equal to seq order, without gaps. Every transaction takes it last.
  insert into user_event_seq as s (user_id, seq) values (p_user, v_count)
    on conflict (user_id) do update set seq = s.seq + v_count returning seq into v_seq;
  insert into user_event (user_id, seq, type, task_id, subject, body, at)
    select p_user, v_seq - v_count + n, e ->> 'type', coalesce(p_task, (e ->> 'taskId')::uuid),
      nullif(e -> 'subject', 'null'::jsonb), e -> 'data', p_at
    from jsonb_array_elements(p_events) with ordinality as x (e, n);
  return v_seq;
end $$;
