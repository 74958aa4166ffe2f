-- Files that the gateway has made for users, such as images. Instances share nothing but the database, so the bytes are here.

-- The bytes of a file, once, however many users have it.
create table file_content (
  sha256 bytea primary key check (octet_length(sha256) = 32),
  bytes bytea not null check (octet_length(bytes) between 1 and 5242880),
  -- The last time that it was stored: content without a file is deleted some time after it.
  stored_at timestamptz not null
);
-- Images and the like are compressed already.
alter table file_content alter column bytes set storage external;
create index file_content_age on file_content (stored_at);

create table file (
  id uuid primary key,
  user_id uuid not null references app_user (id),
  sha256 bytea not null references file_content (sha256),
  name text not null check (length(name) between 1 and 200),
  content_type text not null check (length(content_type) between 1 and 100),
  created_at timestamptz not null
);
create index file_of_content on file (sha256);
create index file_age on file (created_at);

-- Keys that sign the addresses of files, newest first in use; in the envelope of wallet keys.
create table file_key (
  id uuid primary key,
  ciphertext bytea not null,
  wrapped_dek bytea not null,
  kek_id text not null,
  created_at timestamptz not null
);
