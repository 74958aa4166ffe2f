-- Files that an answer has made. Their bytes and their names are in the tables of files, which delete them by age.
create table chat_file (
  chat_id uuid not null,
  -- In the order in which they were made.
  position integer not null,
  file_id uuid not null references file (id) on delete cascade,
  name text not null,
  size integer not null check (size > 0),
  primary key (chat_id, position),
  -- The instance that takes an answer over makes no file again.
  unique (chat_id, name)
);
create index chat_file_of_file on chat_file (file_id);
