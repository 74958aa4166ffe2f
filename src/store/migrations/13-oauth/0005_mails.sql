-- Messages that people are to get about their accounts: one row for each sort of change.
create table person_mail (
  person_id uuid not null references person (id) on delete cascade,
  kind text not null check (length(kind) <= 40),
  -- Changes that no message has named yet, and how many more there were.
  items jsonb not null,
  more integer not null default 0,
  -- The message that is being sent, until the service has accepted it.
  sending jsonb,
  attempts integer not null default 0,
  -- When the next message is sent or tried again; null where nothing waits.
  due_at timestamptz,
  sent_at timestamptz,
  primary key (person_id, kind)
);
create index person_mail_due on person_mail (due_at) where due_at is not null;
create index person_mail_age on person_mail (sent_at) where due_at is null;
