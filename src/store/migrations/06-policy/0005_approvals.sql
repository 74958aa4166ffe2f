-- What an agent asks for above this value waits for the approval of a person. Null: nothing waits.
alter table policy add column approval_above_micros bigint check (approval_above_micros >= 0);

-- The limit for approvals is raised, and removed, as the other limits are raised.
alter table policy_change drop constraint policy_change_field_check;
alter table policy_change add constraint policy_change_field_check check (field in
  ('perTransactionMicros', 'perDayMicros', 'chains', 'tokens', 'recipients', 'approvalAboveMicros'));
alter table policy_change drop constraint policy_change_check;
alter table policy_change drop constraint policy_change_check1;
alter table policy_change drop constraint policy_change_check2;
alter table policy_change add constraint policy_change_form check (case
  when field in ('perTransactionMicros', 'perDayMicros') then micros is not null and entries is null
  when field = 'approvalAboveMicros' then entries is null
  when field = 'tokens' then micros is null
  else micros is null and entries is not null end);

-- Agents send to the address by themselves, with the approval of a person, or not at all.
alter table transfer_recipient drop constraint transfer_recipient_agents_check;
alter table transfer_recipient add constraint transfer_recipient_agents_check
  check (agents in ('denied', 'approval', 'allowed'));
