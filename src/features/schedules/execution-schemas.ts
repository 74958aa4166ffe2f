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

/** The shapes of a schedule's records: runs with their events, moved money, files and recommendations. */

export const executionTypes = ['scheduled', 'catch_up', 'manual'] as const
export const skipReasons = [
  'overlap',
  'missed',
  'frozen',
  'cooldown',
  'no_credits',
  'insufficient_balance',
  'market_closed',
  'policy_denied',
  'access_ended',
  'model_unavailable',
] as const

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
export const ArtifactList = T.Object(
  { items: T.Array(Artifact), total: T.Integer(), bytes: T.Integer() },
  { $id: 'ScheduleArtifacts' },
)

const ExecutionError = T.Object(
  { code: Text, message: Text, retryable: T.Boolean() },
  { $id: 'ScheduleExecutionError' },
)
const Decision = T.Object(
  { action: OneOf(['adjust', 'hold', 'notify']), reason: Text },
  { $id: 'ScheduleDecision', additionalProperties: true },
)
const summaryFields = {
  execution_id: Text,
  schedule_id: Text,
  version: T.Integer({ description: 'Version of the schedule at the time of the run' }),
  number: T.Integer({ description: 'Counts the records of the schedule from 1' }),
  execution_type: OneOf(executionTypes),
  mode: OneOf(['live'], { description: '`live`: it acted on the account' }),
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
}
/** A run in a list, which leaves out the fields that only a single run shows. */
export const ListedExecution = T.Object(
  { ...summaryFields, ...T.Partial(T.Object(fullFields)).properties },
  { $id: 'ScheduleExecution' },
)
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
    execution_id: Text,
    task_id: Text,
    kind: Text,
    mode: OneOf(['live'], { description: '`live`: it acted on the account' }),
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
    created_at: Time,
  },
  { $id: 'ScheduleTransaction' },
)
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
export const RecommendationList = T.Object(
  { items: T.Array(Recommendation), generated_at: TimeOrNull, refreshing: T.Boolean() },
  { $id: 'ScheduleRecommendations' },
)

export const Rated = T.Object(
  { execution_id: Text, rating: T.Integer(), comment: TextOrNull, updated_at: Time },
  { $id: 'ScheduleExecutionRating' },
)
