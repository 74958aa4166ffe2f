-- The credits that an app may spend of a person in a day, as the person has allowed it, and what it has spent of them.
create table app_credits (
  user_id uuid not null,
  client_id text not null,
  per_day integer not null default 20 check (per_day > 0),
  -- The day in UTC to which `used` belongs. Answers that are being written count whole.
  day date not null default '2000-01-01',
  used integer not null default 0 check (used >= 0),
  primary key (user_id, client_id)
);
