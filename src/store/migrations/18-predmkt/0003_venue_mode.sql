-- What a venue allowed last, where that was less than everything; there is no such row while it trades as always.
create table prediction_venue_mode (
  venue text primary key,
  mode text not null check (mode in ('restarting', 'post_only', 'cancel_only')),
  -- Until when, as the venue says; null where it does not say it.
  until timestamptz,
  seen_at timestamptz not null
);
