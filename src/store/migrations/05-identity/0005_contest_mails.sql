-- When a message last said to the person that the holder of the agent's key contests the link.
alter table agent_link add column contest_mailed_at timestamptz;
