-- Sessions that were entered earlier are over.
alter table person add column access_ended_at timestamptz;

-- A refresh token of the grant was used twice at about the same time.
alter table oauth_record add column contested_at timestamptz;
