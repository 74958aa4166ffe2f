-- A switch has a row of each who has set it, so that the end of one leaves the others. `pressed_at`: when that one has set
-- it last, so that an end that was asked for before does not undo it.
alter table kill_switch add column pressed_at timestamptz not null default now();
update kill_switch set pressed_at = since;
alter table kill_switch drop constraint kill_switch_pkey, add primary key (scope, subject, set_by);
