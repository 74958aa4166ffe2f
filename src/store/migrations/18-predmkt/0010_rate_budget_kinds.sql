-- The venue counts the orders and the cancels of a signer in two budgets.
alter table prediction_rate_budget add column kind text not null default 'order' check (kind in ('order', 'cancel'));
alter table prediction_rate_budget alter column kind drop default;
alter table prediction_rate_budget drop constraint prediction_rate_budget_pkey;
alter table prediction_rate_budget add primary key (venue, signer, kind);
