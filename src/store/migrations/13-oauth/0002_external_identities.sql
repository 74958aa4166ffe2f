-- People who sign in at an external identity provider: they have no password here.
alter table person alter column password_hash drop not null;

-- The account of a person at an external identity provider: its subject, and never its address.
create table person_identity (
  issuer text not null check (length(issuer) <= 512),
  subject text not null check (length(subject) <= 255),
  person_id uuid not null references person (id) on delete cascade,
  created_at timestamptz not null,
  primary key (issuer, subject),
  -- An account has one subject of each issuer.
  unique (issuer, person_id)
);
create index person_identity_of_person on person_identity (person_id);
