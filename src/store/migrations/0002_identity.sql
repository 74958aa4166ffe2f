-- Users, keys, tokens, wallets, credits, policy. Forward only.
-- A credential is looked up before its user, and with it the shard, is known: these tables carry no shard.

create table app_user (
  id uuid primary key,
  agent_id text not null unique check (agent_id ~ '^agt_[0-9A-HJKMNP-TV-Z]{26}$'),
  auth_scheme text not null check (auth_scheme in ('keypair', 'oauth')),
  name text check (length(name) <= 256),
  email text check (length(email) <= 320),
  plan text not null default 'free',
  disclaimer_acknowledged_at timestamptz,
  suspended_at timestamptz,
  created_at timestamptz not null
);

create table agent_key (
  public_key bytea primary key check (octet_length(public_key) = 32),
  user_id uuid not null references app_user (id),
  created_at timestamptz not null,
  revoked_at timestamptz
);
create index agent_key_of_user on agent_key (user_id);

create table challenge (
  nonce uuid primary key,
  public_key bytea not null check (octet_length(public_key) = 32),
  agent_name text check (length(agent_name) <= 64),
  text text not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  created_at timestamptz not null
);
create index challenge_age on challenge (expires_at);

-- A signature that bought a token buys no second one.
create table spent_signature (
  digest bytea primary key check (octet_length(digest) = 32),
  expires_at timestamptz not null
);
create index spent_signature_age on spent_signature (expires_at);

create table access_token (
  hash bytea primary key check (octet_length(hash) = 32),
  user_id uuid not null references app_user (id),
  scopes text[] not null,
  expires_at timestamptz not null,
  created_at timestamptz not null
);
create index access_token_of_user on access_token (user_id);
create index access_token_age on access_token (expires_at);

create table wallet (
  id uuid primary key,
  user_id uuid not null references app_user (id),
  kind text not null check (kind in ('evm', 'svm')),
  address text not null,
  ciphertext bytea not null,
  wrapped_dek bytea not null,
  kek_id text not null,
  version integer not null,
  created_at timestamptz not null,
  unique (user_id, kind),
  unique (kind, address)
);
create index wallet_of_kek on wallet (kek_id, id);

create table credit_bucket (
  user_id uuid not null references app_user (id),
  book text not null,
  expires_at timestamptz not null,
  primary key (user_id, book)
);

-- What a user took away from the house's limits: null leaves the house's own.
create table policy (
  user_id uuid primary key,
  version integer not null default 0,
  per_transaction_micros bigint check (per_transaction_micros >= 0),
  per_day_micros bigint check (per_day_micros >= 0),
  chains text[],
  tokens text[],
  recipients text[],
  updated_at timestamptz not null
);

create table policy_spend (
  task_id uuid primary key,
  user_id uuid not null,
  usd_micros bigint not null check (usd_micros >= 0),
  -- What the task has had signed so far; beyond its reservation it takes more from the same caps.
  authorized_micros bigint not null default 0 check (authorized_micros between 0 and usd_micros),
  state text not null check (state in ('reserved', 'released')),
  at timestamptz not null
);
create index policy_spend_recent on policy_spend (user_id, at) include (usd_micros) where state = 'reserved';

-- A row is a switch that is on.
create table kill_switch (
  scope text not null check (scope in ('global', 'user')),
  subject text not null,
  since timestamptz not null,
  set_by text not null,
  primary key (scope, subject)
);

create table policy_decision (
  id uuid primary key,
  task_id uuid not null,
  intent_hash text not null,
  decision text not null check (decision in ('allowed')),
  rule text not null,
  at timestamptz not null
);
create index policy_decision_of_task on policy_decision (task_id);
