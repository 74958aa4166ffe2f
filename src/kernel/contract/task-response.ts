import { liveStates, outcomes, taskStatuses } from '#kernel/task/task-state.ts'
import { setColumns } from './columns.ts'
import { Link } from './operation-link.ts'
import * as T from './schema.ts'
import {
  ChainId,
  Dec,
  DecOrNull,
  Id,
  Nullable,
  OneOf,
  OpenObject,
  SignedUnits,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
} from './wire-types.ts'

const Transaction = T.Object(
  {
    chain_id: ChainId,
    tx_hash: Text,
    explorer_url: TextOrNull,
    status: OneOf(['pending', 'confirmed', 'finalized', 'dropped', 'replaced', 'failed']),
    block: Nullable(T.Integer()),
    nonce: T.Optional(Nullable(T.Integer())),
  },
  { $id: 'TaskTransaction' },
)

const BalanceChange = T.Object(
  { chain_id: ChainId, token_address: Text, symbol: Text, amount: SignedUnits, decimals: T.Integer() },
  { $id: 'TaskBalanceChange' },
)
setColumns(BalanceChange, ['amount', 'symbol'])

const Fill = T.Object(
  {
    venue: Text,
    order_id: Text,
    fill_id: Text,
    side: Text,
    price: Dec,
    size: Dec,
    fee: Dec,
    fee_token: Text,
    confirmed: T.Boolean(),
    realized_pnl_gross_usd: T.Optional(Dec),
    realized_pnl_net_usd: T.Optional(DecOrNull),
    at: Time,
  },
  { $id: 'TaskFill' },
)
setColumns(Fill, ['side', 'size', 'price'])

const TaskError = T.Object(
  {
    code: Text,
    message: Text,
    retryable: T.Boolean(),
    upstream: T.Optional(Text),
    upstream_code: T.Optional(Text),
    details: T.Optional(OpenObject),
  },
  { $id: 'TaskError' },
)

const summary = {
  task_id: Id('The task; poll it until its status has ended'),
  status: OneOf(taskStatuses),
  message: T.String({ description: 'Made from status and state' }),
}
const key = { idempotency_key: TextOrNull }
const brief = { ...summary, ...key }
export const linkedTaskFields = { ...summary, poll_url: Link('tasks_get'), ...key }

export const approvalFields = {
  approval_id: T.String({ description: 'What `approvals_decline` takes' }),
  expires_at: Time,
  confirm_url: T.Union([T.String(), T.Null()], {
    description: 'Where the person decides; null where there is no page for it',
  }),
}

export const taskDetails = {
  kind: T.String({ description: 'The name of the operation' }),
  state: T.String({
    description: `One of ${liveStates.join(', ')}, done; the reason code once failed or cancelled`,
  }),
  outcome: Nullable(OneOf(outcomes)),
  progress: Nullable(T.Object({ step: T.Integer(), of: T.Integer(), text: Text })),
  result: Nullable(OpenObject),
  error: Nullable(TaskError),
  transactions: T.Array(Transaction, {
    description: 'Everything that was ever sent',
  }),
  balance_changes: T.Array(BalanceChange, {
    description: 'Measured, never quoted',
  }),
  fills: T.Array(Fill),
  approval: Nullable(T.Object(approvalFields, { description: 'While the task waits for a person' })),
  cancellable: T.Boolean(),
  parent_task_id: TextOrNull,
  client_id: Nullable(T.String({ description: 'The connected app that asked for it; null for others' })),
  created_at: Time,
  updated_at: Time,
  completed_at: TimeOrNull,
}

const FullView = T.Object({ ...brief, ...taskDetails })
const Brief = T.Object(brief)
export type TaskFullView = T.Static<typeof FullView>
/** `state` and `approval` are set while the task waits for a person. */
export type TaskBrief = T.Static<typeof Brief> & Partial<Pick<TaskFullView, 'state' | 'approval'>>

export const TaskStatusResponse = T.Unsafe<TaskFullView>(
  T.Object({ ...linkedTaskFields, ...taskDetails }, { $id: 'TaskStatusResponse' }),
)
setColumns(TaskStatusResponse, ['task_id', 'kind', 'status', 'balance_changes|fills', 'created_at'])
/**
 * The answer of a task operation: its short form, with the approval if the task waits for a person, or its full
 * form if the caller waited.
 */
export const TaskResponse = T.Unsafe<TaskBrief | TaskFullView>(
  T.Object({ ...linkedTaskFields, ...T.Partial(T.Object(taskDetails)).properties }, { $id: 'TaskResponse' }),
)

/** The answer of an act that may have to wait for a person: its own answer, or that of the waiting task. */
export const orRequested = <S extends T.TSchema>(answer: S) => T.Union([answer, TaskResponse])
