-- Since when the holder of the agent's key contests the link: nothing is loosened through it.
alter table agent_link add column contested_at timestamptz;
-- The limits of the agent that its person has lowered while the link was young, as they were before: an end within its
-- time restores them.
alter table agent_link add column limits_before jsonb not null default '{}';
