-- The tasks of one kind of a user, newest first. An index to a file: each blocks writes to the table while it is built.
create index task_kind_of_user on task (user_id, kind, id desc);
