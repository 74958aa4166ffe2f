-- Sign-in of people by OAuth: what the authorization server stores, its keys, and the people with their sign-in data.

-- Records of the authorization server: clients, sessions, interactions, grants, codes and refresh tokens.
create table oauth_record (
  model text not null check (length(model) <= 40),
  id text not null check (length(id) <= 256),
  payload jsonb not null,
  -- The grant of a code or token: all of a grant end together.
  grant_id text,
  -- Public id of a session.
  uid text,
  account_id text,
  -- Set when a code or refresh token was used.
  consumed_at timestamptz,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (model, id)
);
create index oauth_record_of_grant on oauth_record (grant_id) where grant_id is not null;
create index oauth_record_of_uid on oauth_record (model, uid) where uid is not null;
create index oauth_record_of_account on oauth_record (account_id) where account_id is not null;
create index oauth_record_age on oauth_record (expires_at);

-- Keys of the authorization server, in the envelope encryption of wallet keys.
create table oauth_key (
  id text primary key,
  purpose text not null check (purpose in ('signing', 'cookie')),
  -- The public key that verifies; only of signing keys.
  public_jwk jsonb,
  ciphertext bytea not null,
  wrapped_dek bytea not null,
  kek_id text not null,
  created_at timestamptz not null,
  -- Published earlier than used, so that each instance has it when the first token arrives.
  active_at timestamptz not null
);

-- People who sign in. After the sign-up the user has the same id.
create table person (
  id uuid primary key,
  -- Lower case.
  email text not null unique check (length(email) <= 254),
  -- scrypt, with its parameters and salt.
  password_hash text not null,
  -- The body of the sign-up, as it was sent.
  signup jsonb,
  created_at timestamptz not null
);

-- One-time codes that were sent by email; a new password takes effect when its code is entered.
create table email_code (
  -- The interaction in whose browser the code has to be entered.
  interaction text primary key,
  email text not null check (length(email) <= 254),
  password_hash text not null,
  -- SHA-256 of the interaction and the code.
  code_hash bytea not null check (octet_length(code_hash) = 32),
  attempts_left integer not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index email_code_age on email_code (expires_at);
create index email_code_of_email on email_code (email, created_at);
