-- Counted guesses and messages of the sign-in, in windows, for all instances together.
create table sign_in_limit (
  -- SHA-256 of the name of the budget.
  key bytea primary key check (octet_length(key) = 32),
  count integer not null,
  ends_at timestamptz not null
);
create index sign_in_limit_age on sign_in_limit (ends_at);

-- A code without a password signs in, and changes none.
alter table email_code alter column password_hash drop not null;
