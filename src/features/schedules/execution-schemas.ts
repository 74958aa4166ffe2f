import { setColumns } from '#kernel/contract/columns.ts'
import * as T from '#kernel/contract/schema.ts'
import {
  ChainId,
  DecOrNull,
  Nullable,
  OneOf,
  OpenObject,
  Page,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
} from '#kernel/contract/wire-types.ts'
import { outcomes, taskStatuses } from '#kernel/task/task-state.ts'
import { modes } from './schedule-schemas.ts'

/** The shapes of a schedule's records: runs with their events, moved money, files and recommendations. */

export const executionTypes = ['scheduled', 'catch_up', 'manual', 'exit'] as const
export const skipReasons = [
  'overlap',
  'missed',
  'frozen',
  'cooldown',
  'no_credits',
  'guard',
  'budget',
  'insufficient_balance',
  'market_closed',
  'asset_in_use',
  'foreign_position',
  'policy_denied',
  'access_ended',
  'approval_expired',
  'model_unavailable',
] as const

const mode = OneOf(modes, { description: '`paper`: without money; `live`: on the account' })

const Artifact = T.Object(
  {
    artifact_id: Text,
    execution_id: TextOrNull,
    name: Text,
    path: Text,
    size: T.Integer(),
    content_type: Text,
    sha256: Text,
    url: Text,
    expires_at: Time,
    created_at: Time,
  },
  { $id: 'ScheduleArtifact' },
)
setColumns(Artifact, ['name', 'size', 'created_at', 'url'])
export const ArtifactList = T.Object(
  { items: T.Array(Artifact), total: T.Integer(), bytes: T.Integer() },
  { $id: 'ScheduleArtifacts' },
)

const ExecutionError = T.Object(
  { code: Text, message: Text, retryable: T.Boolean() },
  { $id: 'ScheduleExecutionError' },
)
const Decision = T.Object(
  {
    action: OneOf(['enter', 'exit', 'adjust', 'hold', 'notify']),
    reason: T.String({ description: 'Of a chat in words, of a strategy a code' }),
    text: T.Optional(T.String({ description: 'Of a strategy: the same in words' })),
    inputs_sha256: T.Optional(
      T.String({ description: 'Of a strategy: SHA-256 of the candles, the state and the settings' }),
    ),
  },
  { $id: 'ScheduleDecision', additionalProperties: true },
)
const summaryFields = {
  execution_id: Text,
  schedule_id: Text,
  version: T.Integer({ description: 'Version of the schedule at the time of the run' }),
  number: T.Integer({ description: 'Counts the records of the schedule from 1' }),
  execution_type: OneOf(executionTypes, { description: '`exit`: it closed what the schedule had open' }),
  mode,
  scheduled_for: TimeOrNull,
  first_scheduled_for: TimeOrNull,
  skipped_slots: T.Integer(),
  status: OneOf(taskStatuses),
  outcome: Nullable(OneOf(outcomes)),
  skip_reason: Nullable(OneOf(skipReasons)),
  decision: Nullable(Decision),
  late_ms: Nullable(T.Integer()),
  started_at: TimeOrNull,
  ended_at: TimeOrNull,
  summary: Nullable(T.String({ description: 'What came out of it, in a sentence; null before its end' })),
  credits_used: Nullable(T.Integer()),
  spent_usd: DecOrNull,
  realized_pnl_usd: T.Unsafe<string | null>({
    ...DecOrNull,
    description:
      'What its exits have won or lost, in USD after fees and funding; its stops and targets may follow',
  }),
  rating: Nullable(T.Integer()),
  error: Nullable(ExecutionError),
  chat_id: TextOrNull,
  task_ids: T.Array(Text),
  created_at: Time,
}
const fullFields = {
  query: Text,
  answer: TextOrNull,
  artifacts: T.Array(Artifact),
  usage: Nullable(OpenObject),
  config: T.Unsafe<Record<string, unknown> | null>({
    ...Nullable(OpenObject),
    description: 'The settings of the strategy in its version; null for a question or an order in words',
  }),
}
/** A run in a list, which leaves out the fields that only a single run shows. */
export const ListedExecution = T.Object(
  { ...summaryFields, ...T.Partial(T.Object(fullFields)).properties },
  { $id: 'ScheduleExecution' },
)
setColumns(ListedExecution, [
  'number',
  'status',
  'outcome',
  'scheduled_for',
  'spent_usd',
  'realized_pnl_usd',
  'summary',
])
export const Execution = T.Object({ ...summaryFields, ...fullFields }, { $id: 'ScheduleExecutionDetail' })
export const ExecutionPage = Page(ListedExecution, { $id: 'ScheduleExecutionPage' })
export type ExecutionView = T.Static<typeof ListedExecution>

export const eventTypes = ['log', 'planning', 'tool_call', 'tool_response', 'trade', 'error', 'done'] as const
const Event = T.Object(
  { seq: T.Integer(), type: OneOf(eventTypes), data: OpenObject, created_at: Time },
  { $id: 'ScheduleExecutionEvent' },
)
export const EventPage = Page(Event, { $id: 'ScheduleExecutionEventPage' })

const Transaction = T.Object(
  {
    id: Text,
    execution_id: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'The run that ordered it; null for what was done by hand',
    }),
    task_id: T.Unsafe<string | null>({ ...TextOrNull, description: 'Its task; null for a `fill`' }),
    kind: T.String({ description: 'The kind of its task, or `fill`: an order of a strategy was filled' }),
    mode,
    status: OneOf(taskStatuses),
    outcome: Nullable(OneOf(outcomes)),
    chain_id: Nullable(ChainId),
    tx_hash: TextOrNull,
    asset: TextOrNull,
    side: TextOrNull,
    size: DecOrNull,
    price: DecOrNull,
    amount_usd: DecOrNull,
    fee: DecOrNull,
    fee_token: TextOrNull,
    realized_pnl_usd: T.Unsafe<string | null>({
      ...DecOrNull,
      description: 'Of an exit: what it has won or lost, in USD after fees and funding',
    }),
    reason: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'Of a `fill`: why, as a code of the decision, or stop, target, liquidation, by_hand',
    }),
    is_exit: Nullable(
      T.Boolean({ description: 'Of a `fill`: whether it closed a position or a part of one' }),
    ),
    decision_seq: Nullable(
      T.Integer({ description: 'Of a `fill`: which decision of its run it carries out' }),
    ),
    created_at: Time,
  },
  { $id: 'ScheduleTransaction' },
)
setColumns(Transaction, ['created_at', 'kind', 'asset', 'side', 'size', 'price', 'realized_pnl_usd'])
export const TransactionPage = Page(Transaction, { $id: 'ScheduleTransactionPage' })
export type TransactionView = T.Static<typeof Transaction>

export const priorities = ['now', 'soon', 'later'] as const
export const categories = ['execution', 'risk', 'logic', 'config', 'research'] as const
const Recommendation = T.Object(
  {
    id: Text,
    priority: OneOf(priorities),
    category: OneOf(categories),
    title: Text,
    why: Text,
    steps: T.Array(Text),
    evidence: T.Array(Text),
    action: Nullable(
      T.Object(
        { operation: T.String({ description: 'What would be started' }), input: OpenObject },
        { $id: 'ScheduleAction' },
      ),
    ),
    status: OneOf(['open', 'accepted', 'declined']),
    expires_at: TimeOrNull,
    created_at: Time,
  },
  { $id: 'ScheduleRecommendation' },
)
setColumns(Recommendation, ['id', 'priority', 'title', 'status', 'expires_at'])
export const RecommendationList = T.Object(
  { items: T.Array(Recommendation), generated_at: TimeOrNull, refreshing: T.Boolean() },
  { $id: 'ScheduleRecommendations' },
)

export const Rated = T.Object(
  { execution_id: Text, rating: T.Integer(), comment: TextOrNull, updated_at: Time },
  { $id: 'ScheduleExecutionRating' },
)
