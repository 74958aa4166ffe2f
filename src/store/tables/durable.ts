import type { Generated } from 'kysely'
import type { TriggerOrder } from '#kernel/task/trigger-order.ts'

type Jsonb = object
type Amount = string

export type TaskRow = {
  id: string
  shard: number
  user_id: string
  kind: string
  kind_version: number
  status: string
  state: string
  outcome: string | null
  step: string
  data: Jsonb
  input: Jsonb
  result: Jsonb | null
  error: Jsonb | null
  attempts: number
  version: number
  deadline: Date
  cancel_requested: boolean
  parent_id: string | null
  idempotency_key: string | null
  /**
   * The id under which chains and the venue know the execution of this task. They are searched for this id, because the
   * database may have lost the execution. Null means that the task's own id is used, and that no search is needed.
   */
  execution_id: string | null
  created_at: Date
  updated_at: Date
  completed_at: Date | null
}

export type TaskQueueRow = {
  task_id: string
  user_id: string
  kind: string
  priority: number
  run_at: Date
  owner: string | null
  orders: Generated<number>
}

export type AccountRow = {
  id: Generated<bigint>
  shard: number
  owner: string
  asset: string
  sub_account: string
  avail: Amount
  held: Amount
  version: bigint
  has_units: Generated<boolean>
}

export type TransferRow = {
  id: Generated<bigint>
  debit: bigint
  credit: bigint
  key: string
  amount: Amount
  posted: Amount | null
  state: string
  task_id: string | null
  reason: string
  at: Date
  settled_at: Date | null
  settled_seq: bigint | null
}

export type ApprovalRow = {
  task_id: string
  approval_id: string
  user_id: string
  operation: string
  agent_id: string
  intent: Jsonb
  intent_sha256: string
  requested_at: Date
  expires_at: Date
  decision: 'approved' | 'declined' | 'expired' | null
  decided_by: string | null
  decided_at: Date | null
}

export type DurableTables = {
  approval: ApprovalRow
  database_binding: { key: string; value: string }
  task: TaskRow
  task_queue: TaskQueueRow
  account: AccountRow
  transfer: TransferRow
  ledger_discrepancy: { what: string; subject: string; recorded: string; counted: string; found_at: Date }
  idempotency: {
    user_id: string
    key: string
    operation: string
    body_hash: string
    task_id: string | null
    response: Jsonb | null
    at: Date
  }
  mailbox: { id: string; user_id: string; seen_at: Date }
  mailbox_message: { id: bigint; mailbox_id: string; sealed: Uint8Array }
  recent_request: { user_id: string; request_hash: string; task_id: string; at: Date }
  nonce_sequence: { kind: string; chain: string; signer: string; next: bigint }
  effect: {
    id: string
    task_id: string
    step: string
    kind: string
    intent: Jsonb
    signed: Jsonb
    external_id: string
    status: string
    policy_receipt: string
    proof: Jsonb | null
    valid_until: Date | null
    at: Date
  }
  tx_attempt: {
    effect_id: string
    n: number
    raw: string
    external_id: string
    nonce_kind: string
    chain: string
    signer: string
    nonce: bigint
    status: string
    at: Date
  }
  user_event_seq: { user_id: string; seq: bigint }
  user_event: {
    user_id: string
    seq: bigint
    type: string
    task_id: string | null
    subject: Jsonb | null
    body: Jsonb
    at: Date
  }
  schedule: {
    id: string
    user_id: string | null
    kind: string
    input: Jsonb
    every_seconds: number
    next_at: Date
    created_at: Date
  }
  trigger_order: Omit<TriggerOrder, 'input' | 'direction' | 'status' | 'attempts' | 'ends_group'> & {
    direction: string
    input: Jsonb
    status: string
    attempts: Generated<number>
    ends_group: Generated<boolean>
  }
  market_lease: {
    market: string
    owner: string | null
    epoch: number
    lease_until: Date | null
    priced_at: Date | null
  }
  maintenance_run: {
    name: string
    run: bigint
    owner: string
    started_at: Date
    lease_until: Date | null
    ended_at: Date | null
  }
  instance: { id: string; started_at: Date; lease_until: Date }
}
