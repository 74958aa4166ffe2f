-- Servers of the operator that call for users, and the keys by which they are known.

create table backend (
  id uuid primary key,
  name text not null unique check (name ~ '^[a-z0-9][a-z0-9-]{0,63}$'),
  -- The account that pays for every call; null: the user that a call names pays for it.
  account_id uuid references app_user (id),
  created_at timestamptz not null
);

create table backend_key (
  -- Part of the key itself, and no secret.
  id text primary key check (id ~ '^[0-9a-f]{16}$'),
  backend_id uuid not null references backend (id),
  -- SHA-256 of the whole key. The key itself is shown once and stored nowhere.
  key_hash bytea not null check (octet_length(key_hash) = 32),
  created_at timestamptz not null,
  -- Set where another key has replaced it, or it was revoked.
  expires_at timestamptz
);
create index backend_key_of on backend_key (backend_id);
create index backend_key_end on backend_key (expires_at) where expires_at is not null;

-- Idempotency keys of a backend: each belongs to one payer, so that a repeat for another user is a conflict.
create table backend_request (
  backend_id uuid not null references backend (id),
  -- SHA-256 of the idempotency key.
  key_hash bytea not null check (octet_length(key_hash) = 32),
  user_id uuid not null,
  at timestamptz not null,
  primary key (backend_id, key_hash)
);
create index backend_request_age on backend_request (at);
