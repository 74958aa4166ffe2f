-- Addresses of files of the user that were made until then are void: an access to the account ended.
create table file_link_end (
  user_id uuid primary key,
  ended_at timestamptz not null
);
create index file_link_end_age on file_link_end (ended_at);
