-- Null: the address has answered nothing yet. Such webhooks have connections that slow ones never take.
alter table webhook_cursor alter column is_slow drop not null;
