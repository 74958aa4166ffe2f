-- The leverage that an account set for a market through the gateway: the default of later orders there, and what
-- saves a question to the venue before each order.
create table venue_leverage (
  user_id uuid not null references app_user (id),
  venue text not null,
  symbol text not null,
  is_cross boolean not null,
  leverage integer not null check (leverage > 0),
  set_at timestamptz not null,
  primary key (user_id, venue, symbol)
);
