-- Agents with a key pair that belong to the account of a person.
create table agent_link (
  -- The user of the agent. It is linked to at most one person.
  user_id uuid primary key references app_user (id),
  -- The user of the person.
  person_id uuid not null references app_user (id),
  -- The name that the person gave it.
  name text check (length(name) <= 64),
  linked_at timestamptz not null,
  check (user_id <> person_id)
);
create index agent_link_of_person on agent_link (person_id, linked_at);

-- One-time codes by which a person links an agent. An agent has one: a new one replaces it.
create table agent_link_code (
  user_id uuid primary key references app_user (id),
  -- SHA-256 of the code.
  code_hash bytea not null unique check (octet_length(code_hash) = 32),
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index agent_link_code_age on agent_link_code (expires_at);
