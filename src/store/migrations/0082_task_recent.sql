-- What a user's tasks did in the last seconds: looked up before exits are placed or cancelled.
create index task_recent_of_user on task (user_id, completed_at) where completed_at is not null;
