-- Chats: threads of a user, their turns, the events of each turn, and what a turn has proposed.

create table chat_thread (
  thread_id uuid primary key,
  user_id uuid not null,
  -- The first question, shortened.
  title text not null,
  -- Of the latest turn.
  agent text not null,
  last_message text not null,
  -- Questions and answers.
  message_count integer not null,
  -- What the planner remembers between two turns, such as an open question.
  memory jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null
-- A few updates per turn, of columns that the index has.
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index chat_thread_of_user on chat_thread (user_id, updated_at desc, thread_id desc);

-- A question and its answer. The task that runs it has the same id, which is a UUIDv7: turns are ordered by it.
create table chat_turn (
  chat_id uuid primary key,
  thread_id uuid not null,
  user_id uuid not null,
  agent text not null,
  query text not null,
  -- Who asked, without a credential that would open anything: tools are called in this name, as long as it is valid.
  caller jsonb not null,
  status text not null check (status in ('running', 'completed', 'failed', 'cancelled')),
  -- The text as far as it was sent.
  answer text,
  -- Name, data and number of the last event: a turn whose events are deleted is answered from here.
  last_event text check (last_event in ('done', 'error')),
  last_data jsonb,
  last_seq integer,
  credits_used integer,
  -- When another instance last had a listener of this turn.
  listened_at timestamptz not null,
  created_at timestamptz not null,
  completed_at timestamptz,
  constraint ended_turn_has_a_last_event check (
    (status = 'running') = (last_event is null) and (status = 'running') = (completed_at is null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index chat_turn_of_thread on chat_turn (thread_id, chat_id desc);

-- The events of a turn, stored before they are sent. Deleted by age, in the order of the ids, which have the time.
create table chat_event (
  chat_id uuid not null,
  -- Gapless from 1.
  seq integer not null,
  -- The claim of the task that has written it.
  epoch integer not null,
  event text not null,
  data jsonb not null,
  -- The length of the data as text.
  bytes integer not null,
  primary key (chat_id, seq)
);

-- Results of tools of turns that run: the instance that takes a turn over repeats none of its calls. Deleted with the
-- end of the turn.
create table chat_call (
  chat_id uuid not null,
  call_id text not null,
  output jsonb not null,
  primary key (chat_id, call_id)
);

-- What a turn has proposed and only its user can start: an operation with its input.
create table chat_recommendation (
  recommendation_id uuid primary key,
  chat_id uuid not null,
  -- The call of the turn that has proposed it.
  call_id text not null,
  user_id uuid not null,
  title text not null,
  detail text not null,
  operation text not null,
  input jsonb not null,
  -- SHA-256 of the canonical operation and input: what was shown is what is started.
  intent_sha256 text not null,
  status text not null check (status in ('open', 'accepted', 'declined')),
  -- While it is being started, for so long: no other decision is taken meanwhile.
  deciding_until timestamptz,
  task_id uuid,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz not null,
  unique (chat_id, call_id)
);

-- Appends the events of turns, each turn as one, where the caller still has the claim under which it writes. Returns
-- the turns that were written. {"chat_id", "version", "events": [{"seq", "event", "data", "bytes"}], "calls": [{"call_id",
-- "output"}], "recommendations": [...]}
create function chat_append(p jsonb) returns setof uuid language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
as $$
declare
  v_ids uuid[] := array(select (x ->> 'chat_id')::uuid from jsonb_array_elements(p) x);
  v_held uuid[];
begin
  -- Shared, so that a claim comes before or after the events and never between them.
  with held as (
    select id, version from task where id = any(v_ids) and status = 'running' order by id for share)
  select array_agg(h.id) into v_held from held h
    join jsonb_array_elements(p) x on (x ->> 'chat_id')::uuid = h.id and (x ->> 'version')::integer = h.version;
  if v_held is null then return; end if;
  insert into chat_event (chat_id, seq, epoch, event, data, bytes)
    select (x ->> 'chat_id')::uuid, (e ->> 'seq')::integer, (x ->> 'version')::integer, e ->> 'event', e -> 'data',
      (e ->> 'bytes')::integer
    from jsonb_array_elements(p) x, jsonb_array_elements(x -> 'events') e where (x ->> 'chat_id')::uuid = any(v_held);
  insert into chat_call (chat_id, call_id, output)
    select (x ->> 'chat_id')::uuid, c ->> 'call_id', c -> 'output'
    from jsonb_array_elements(p) x, jsonb_array_elements(x -> 'calls') c where (x ->> 'chat_id')::uuid = any(v_held);
  insert into chat_recommendation
    select r.* from jsonb_array_elements(p) x,
      jsonb_populate_recordset(null::chat_recommendation, x -> 'recommendations') r
    where (x ->> 'chat_id')::uuid = any(v_held);
  return query select unnest(v_held);
end $$;
