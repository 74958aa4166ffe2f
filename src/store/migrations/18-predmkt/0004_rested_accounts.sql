-- Accounts with nothing open, by when they were compared with the venue last.
create index prediction_account_rested on prediction_account (venue, trades_through) where sync_at is null;
