-- What the runs of schedules hold of a balance at the baseline, stored in the commit that moves the baseline: what came
-- after it, which is little, decides the rest.
create table venue_own_part (
  user_id uuid not null,
  venue text not null,
  balance_key text not null,
  strategy_id uuid not null,
  -- Negative for a short position.
  amount numeric not null check (amount <> 0),
  primary key (user_id, venue, balance_key, strategy_id)
);

-- Orders of one market that have not ended, or that have ended lately.
create index venue_order_of_end on venue_order (user_id, venue, market, symbol, ended_at);
