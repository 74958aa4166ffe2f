-- The tasks of a user that have not ended.
create index task_open_of_user on task (user_id, id desc) where status in ('pending', 'running');
