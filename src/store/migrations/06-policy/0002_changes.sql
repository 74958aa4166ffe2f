-- Limits that a person has raised. Each takes effect at its time, unless it was cancelled before. The next change of the
-- user's limits moves those in effect into the policy.
create table policy_change (
  change_id uuid primary key,
  user_id uuid not null,
  -- A later change of the same field replaces the earlier one, so a user has as many as there are fields.
  field text not null check (field in ('perTransactionMicros', 'perDayMicros', 'chains', 'tokens', 'recipients')),
  -- Of the caps.
  micros bigint check (micros >= 0),
  -- Of the lists; null: any token.
  entries text[],
  requested_at timestamptz not null,
  effective_at timestamptz not null,
  unique (user_id, field),
  check ((micros is not null) = (field in ('perTransactionMicros', 'perDayMicros'))),
  check (micros is null or entries is null),
  check (micros is not null or entries is not null or field = 'tokens')
);
