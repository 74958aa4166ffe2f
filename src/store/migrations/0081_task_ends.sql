-- The tasks of a user that ended one way, newest first.
create index task_ended_of_user on task (user_id, status, id desc) where status in ('completed', 'failed', 'cancelled');
