-- When the recommendations of a strategy were made last; null: never.
alter table strategy add column recommended_at timestamptz;
