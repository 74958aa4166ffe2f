-- Closed candles of the venue's markets, which never change. The venue serves the newest few thousand of an interval alone.

create table candle (
  market text not null,
  -- The length, such as '15m'.
  span text not null,
  start_ms bigint not null check (start_ms >= 0),
  open numeric not null check (open > 0),
  high numeric not null check (high > 0),
  low numeric not null check (low > 0),
  close numeric not null check (close > 0),
  volume numeric not null check (volume >= 0),
  primary key (market, span, start_ms)
);

-- The candles of one length of a market that are stored, and that are read from the venue while somebody asks for them.
create table candle_series (
  market text not null,
  span text not null,
  -- The venue was asked for every candle that began in this time.
  filled_from_ms bigint not null,
  filled_to_ms bigint not null,
  followed_until timestamptz not null,
  primary key (market, span),
  constraint filled_time_has_an_order check (filled_from_ms <= filled_to_ms)
);
create index candle_series_followed on candle_series (followed_until);

-- The hourly funding of perpetual markets.
create table funding_rate (
  market text not null,
  at_ms bigint not null check (at_ms >= 0),
  rate numeric not null,
  primary key (market, at_ms)
);

-- The time of whose funding the venue was asked.
create table funding_series (
  market text primary key,
  filled_from_ms bigint not null,
  filled_to_ms bigint not null,
  constraint filled_time_has_an_order check (filled_from_ms <= filled_to_ms)
);
