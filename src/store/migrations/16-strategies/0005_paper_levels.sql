-- What the paper orders of a user have taken of the levels that the venue showed: no two orders take one level.
create table paper_levels (
  user_id uuid not null,
  market text not null,
  -- The time of the block of the book. The levels of a later block are new.
  block_ms bigint not null,
  -- Sizes by price, in units.
  bids jsonb not null,
  asks jsonb not null,
  primary key (user_id, market)
);
