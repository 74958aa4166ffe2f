-- Users, their credentials, wallets and credits. A credential is looked up before its user, and with it the shard, is
-- known: these tables have no shard.

-- Users.
create table app_user (
  id uuid primary key,
  -- The public id, which the API shows.
  agent_id text not null unique check (agent_id ~ '^agt_[0-9A-HJKMNP-TV-Z]{26}$'),
  auth_scheme text not null check (auth_scheme in ('keypair', 'oauth')),
  name text check (length(name) <= 256),
  email text check (length(email) <= 320),
  plan text not null default 'free',
  disclaimer_acknowledged_at timestamptz,
  suspended_at timestamptz,
  created_at timestamptz not null
);

-- Ed25519 keys with which an agent signs its token requests.
create table agent_key (
  public_key bytea primary key check (octet_length(public_key) = 32),
  user_id uuid not null references app_user (id),
  created_at timestamptz not null,
  revoked_at timestamptz
);
create index agent_key_of_user on agent_key (user_id);

-- Texts that a registering agent has to sign; each is valid once.
create table challenge (
  nonce uuid primary key,
  public_key bytea not null check (octet_length(public_key) = 32),
  agent_name text check (length(agent_name) <= 64),
  text text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index challenge_age on challenge (expires_at);

-- Signatures that were exchanged for a token, so that none is exchanged twice.
create table spent_signature (
  -- SHA-256 of the signature.
  digest bytea primary key check (octet_length(digest) = 32),
  expires_at timestamptz not null
);
create index spent_signature_age on spent_signature (expires_at);

-- Bearer tokens, by their hash alone.
create table access_token (
  hash bytea primary key check (octet_length(hash) = 32),
  user_id uuid not null references app_user (id),
  scopes text[] not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index access_token_of_user on access_token (user_id);
create index access_token_age on access_token (expires_at);

-- Wallet keys of users, in envelope encryption.
create table wallet (
  id uuid primary key,
  user_id uuid not null references app_user (id),
  kind text not null check (kind in ('evm', 'svm')),
  address text not null,
  -- The private key, encrypted with the data key.
  ciphertext bytea not null,
  -- The data key, wrapped with the key-encryption key kek_id.
  wrapped_dek bytea not null,
  kek_id text not null,
  -- Format of the encryption.
  version integer not null,
  created_at timestamptz not null,
  unique (user_id, kind),
  unique (kind, address)
);
create index wallet_of_kek on wallet (kek_id, id);

-- When granted credits expire. Their amount is in the ledger.
create table credit_bucket (
  user_id uuid not null references app_user (id),
  -- Sub-account of the user in the ledger.
  sub_account text not null,
  expires_at timestamptz not null,
  primary key (user_id, sub_account)
);
