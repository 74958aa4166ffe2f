-- What first credits were granted for, so that no proof is used twice.
create table signup_grant (
  -- SHA-256 of the proof: the mailbox of a person, or the person of a linked agent.
  proof bytea primary key check (octet_length(proof) = 32),
  user_id uuid not null references app_user (id),
  granted_at timestamptz not null
);
