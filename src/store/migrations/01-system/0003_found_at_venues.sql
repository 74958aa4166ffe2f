-- What the venue did for accounts of ours: an order or a withdrawal has no transaction of a chain.
alter table found_execution alter column tx_hash drop not null;
-- Of an order: its ids, market and fills, and the armed order or the task that it belongs to, where they are known; of a
-- withdrawal: account, nonce and amount. Null for a transaction of a chain.
alter table found_execution add column venue jsonb;
