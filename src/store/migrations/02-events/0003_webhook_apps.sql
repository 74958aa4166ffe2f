-- A webhook ends with the app that added it, and the poll reads a part of the cursors at a time.

-- The app of a person that last gave it its address or its secret; null: a key pair, or a page of the gateway itself.
alter table webhook add column client_id text;

-- Apps learn nothing of each other, so two of them may post to one address. Each app has an address once: an act
-- that adds or changes a webhook holds the lock of its user.
create index webhook_of_user on webhook (user_id);
alter table webhook drop constraint webhook_user_id_url_key;

-- Messages that are tried again. A message that arrives at its first attempt writes no index.
create index webhook_cursor_retry on webhook_cursor (retry_at) where retry_at is not null;
