-- What operators do by hand, and the sponsors that they have paused. Forward only.

-- One row for each use of the operator's command line. Rows are only added.
create table admin_action (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  actor text not null check (length(actor) between 1 and 200),
  -- Null where a command only reads.
  reason text check (length(reason) between 1 and 2000),
  command text not null,
  subject text,
  details jsonb not null default '{}'
);

create function admin_action_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'recorded actions of operators are never changed';
end $$;
create trigger admin_action_append_only before update or delete on admin_action
  for each row execute function admin_action_is_append_only();

-- An account that pays for gas and carries nothing new; what it has under way is still confirmed and replaced.
create table paused_sponsor (
  chain text not null,
  signer text not null,
  since timestamptz not null,
  set_by text not null,
  reason text not null,
  primary key (chain, signer)
);
