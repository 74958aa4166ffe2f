-- The tasks that a task has started, newest first.
create index task_of_parent on task (parent_id, id desc) where parent_id is not null;
