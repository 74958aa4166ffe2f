-- Answers to the clients of MCP's transport of 2024: one instance has the stream, and any instance may have the answer.

create table mailbox (
  -- Digest of the client's secret.
  id text primary key,
  user_id uuid not null,
  -- Renewed while the stream is open.
  seen_at timestamptz not null
);
create index mailbox_of_user on mailbox (user_id);
create index mailbox_by_age on mailbox (seen_at);

-- Deleted when they are taken.
create table mailbox_message (
  id bigint generated always as identity primary key,
  mailbox_id text not null references mailbox (id) on delete cascade,
  -- Encrypted under the client's secret, because an answer may hold a credential.
  sealed bytea not null
);
create index mailbox_message_of_mailbox on mailbox_message (mailbox_id, id);
