-- Requests of agents that wait for a person. The task of the request exists, and has reserved and signed nothing. Who
-- writes the decision first has decided: approved, declined or expired.
create table approval (
  task_id uuid primary key,
  approval_id uuid not null unique,
  -- The user of the task.
  user_id uuid not null,
  -- The operation and who asked, for the admission after the approval. Its input is that of the task.
  operation text not null,
  agent_id text not null,
  -- What the person reads and approves: figures of the time of the request.
  intent jsonb not null check (octet_length(intent::text) <= 4096),
  -- Of user, operation, input and intent.
  intent_sha256 text not null,
  requested_at timestamptz not null,
  expires_at timestamptz not null,
  decision text check (decision in ('approved', 'declined', 'expired')),
  -- Null where it expired.
  decided_by text,
  decided_at timestamptz,
  check ((decision is null) = (decided_at is null)),
  check (expires_at > requested_at)
);
-- What waits is looked for among the requests of the last minutes.
create index approval_of_user on approval (user_id, expires_at);
