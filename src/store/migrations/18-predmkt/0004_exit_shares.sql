-- What the exits of a purchase may still sell, and how orders end that the venue does not list any more.

-- Shares of a purchase that were sold by hand, or have left the wallet otherwise: its exits do not sell them.
alter table prediction_order add column released numeric(40) not null default 0;
-- Since when the chain has shown fewer shares than the exits of such purchases would sell.
alter table prediction_order add column short_since timestamptz;
-- Whether what the venue shows of the order can still change here: it is open, its trades are not all listed and
-- settled, or it is missing at the venue.
alter table prediction_order add column followed boolean not null default true;
update prediction_order set followed = false where ended_at is not null;
-- Since when, and how often in a row, the venue did not know the order.
alter table prediction_order add column missing_since timestamptz;
alter table prediction_order add column misses integer not null default 0;
-- The user or the gateway has asked for the end of the order.
alter table prediction_order add column cancel_asked boolean not null default false;
create index prediction_order_followed on prediction_order (user_id, venue, at) where followed;

-- Sales in a row that sold nothing: each waits longer.
alter table prediction_exit add column attempts integer not null default 0;

-- When the shares of the account's exits were last compared with the chain.
alter table prediction_account add column shares_read_at timestamptz;
