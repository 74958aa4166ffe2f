-- Keys are tokens with a name that live for days, for clients that know only fixed headers.
alter table access_token add column key_id uuid unique;
alter table access_token add column key_name text check (length(key_name) <= 64);
-- The connection of a key of a person: the key ends with it, however it ends.
alter table access_token add column grant_id text;
alter table access_token add column grant_model text generated always as ('Grant') stored;
alter table access_token add foreign key (grant_model, grant_id) references oauth_record (model, id) on delete cascade;
create index access_token_of_grant on access_token (grant_model, grant_id) where grant_id is not null;
