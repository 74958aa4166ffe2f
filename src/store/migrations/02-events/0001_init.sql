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

-- Events of one user in one commit. An event may name its task itself, where task_id is null.
create type new_user_events as (n integer, user_id uuid, task_id uuid, events jsonb, at timestamptz);

-- Appends events and returns for each element the number of its last one; null without events. The row lock of the
-- number makes commit order equal to seq order, without gaps. Every transaction takes it last, by user.
create function user_events_append(p_all new_user_events[]) returns table (n integer, last bigint)
language plpgsql as $$
#variable_conflict use_column
begin
  return query
  with counted as (
    select x.n, x.user_id, x.task_id, x.events, x.at, jsonb_array_length(x.events) as length,
      sum(jsonb_array_length(x.events)) over (partition by x.user_id order by x.n) as upto,
      sum(jsonb_array_length(x.events)) over (partition by x.user_id) as total
    from unnest(p_all) x where jsonb_array_length(x.events) > 0),
  numbered as (
    insert into user_event_seq as s (user_id, seq)
      select distinct c.user_id, c.total from counted c order by c.user_id
    on conflict (user_id) do update set seq = s.seq + excluded.seq returning s.user_id, s.seq),
  placed as (
    select c.*, (s.seq - c.total + c.upto)::bigint as last from counted c join numbered s on s.user_id = c.user_id),
  written as (
    insert into user_event (user_id, seq, type, task_id, subject, body, at)
      select c.user_id, c.last - c.length + e.ordinal, e.event ->> 'type', coalesce(c.task_id, (e.event ->> 'taskId')::uuid),
        nullif(e.event -> 'subject', 'null'::jsonb), e.event -> 'data', c.at
      from placed c, jsonb_array_elements(c.events) with ordinality as e (event, ordinal))
  select x.n, c.last from unnest(p_all) x left join placed c on c.n = x.n;
end $$;

-- The same for one user.
create function user_event_append(p_user uuid, p_task uuid, p_events jsonb, p_at timestamptz)
returns bigint language sql as $$
  select last from user_events_append(array[(0, p_user, p_task, p_events, p_at)::new_user_events])
$$;
