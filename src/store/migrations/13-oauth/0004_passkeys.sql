-- Passkeys (WebAuthn credentials) of people; ten for an account.
create table passkey (
  -- Chosen by the authenticator, and of one account alone.
  credential_id bytea primary key check (octet_length(credential_id) between 16 and 1023),
  -- Names it in forms.
  id uuid not null unique,
  person_id uuid not null references person (id) on delete cascade,
  -- A COSE key.
  public_key bytea not null check (octet_length(public_key) <= 2048),
  -- Of the last signature; 0 where the authenticator counts none.
  sign_count bigint not null check (sign_count >= 0),
  -- Whether its provider may copy it to other devices of the person.
  is_synced boolean not null,
  name text not null check (length(name) between 1 and 60),
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkey_of_person on passkey (person_id);

-- A code of an account that is created with a passkey: entering it signs nobody in and sets no password.
alter table email_code add column is_for_passkey boolean not null default false;
