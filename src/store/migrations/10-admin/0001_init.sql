-- Records of operator commands.

-- One row per use of the operator's command line. Append-only.
create table admin_action (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  actor text not null check (length(actor) between 1 and 200),
  -- Null where a command only reads.
  reason text check (length(reason) between 1 and 2000),
  command text not null,
  -- What the command was applied to, such as a user or a task.
  subject text,
  details jsonb not null default '{}'
);

create function admin_action_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'recorded actions of operators are never changed';
end $$;
create trigger admin_action_append_only before update or delete on admin_action
  for each row execute function admin_action_is_append_only();
