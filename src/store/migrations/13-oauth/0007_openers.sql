-- SHA-256 of the address that began a sign-in: each address has few that are open.
alter table oauth_record add column opened_by bytea check (octet_length(opened_by) = 32);
create index oauth_record_of_opener on oauth_record (opened_by, created_at) where opened_by is not null;
