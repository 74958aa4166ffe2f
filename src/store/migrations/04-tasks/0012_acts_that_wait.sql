-- An act that allows more than before waits for a person as a request of an agent does. What it shows is longer: a list of
-- what is added.
alter table approval drop constraint approval_intent_check;
alter table approval add constraint approval_intent_check check (octet_length(intent::text) <= 32768);
