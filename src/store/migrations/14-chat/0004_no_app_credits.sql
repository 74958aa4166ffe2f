-- An operator can end what an app may spend of a person: it spends 0 then.
alter table app_credits drop constraint app_credits_per_day_check,
  add constraint app_credits_per_day_check check (per_day >= 0);
