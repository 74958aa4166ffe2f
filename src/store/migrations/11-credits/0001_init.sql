-- Payments for credits in the native coin of a chain.

-- Payments to the contracts that take them, found in the logs of final blocks or by the tasks that made them.
create table credit_payment (
  chain_id text not null,
  tx_hash text not null,
  log_index integer not null,
  block bigint not null,
  payer text not null,
  -- The address of a token that was sent without a payment, or the stand-in for the native coin.
  token text not null,
  amount numeric(78, 0) not null,
  -- The task that the payment names; it need not exist.
  task_id uuid,
  -- `pending`: the task has not ended. `stray`: no task is paid by it, and an operator has to decide.
  state text not null check (state in ('pending', 'credited', 'stray', 'resolved')),
  -- Why it is stray.
  reason text,
  found_at timestamptz not null,
  resolved_at timestamptz,
  resolved_by text,
  resolution text,
  primary key (chain_id, tx_hash, log_index)
);
create index credit_payment_pending on credit_payment (found_at) where state = 'pending';
create index credit_payment_stray on credit_payment (found_at) where state = 'stray';

-- How far the logs of a contract were searched.
create table credit_payment_scan (
  chain_id text not null,
  till text not null,
  next_block bigint not null,
  scanned_at timestamptz not null,
  primary key (chain_id, till)
);
