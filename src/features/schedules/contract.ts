import { readFaults } from '#engines/venue/records/contract-schemas.ts'
import { act, group, type InputOf, read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { orRequested, TaskResponse } from '#kernel/contract/task-response.ts'
import { Nullable, OneOf, Page, Text } from '#kernel/contract/wire-types.ts'
import {
  ArtifactList,
  EventPage,
  Execution,
  ExecutionPage,
  executionTypes,
  Rated,
  RecommendationList,
  TransactionPage,
} from './execution-schemas.ts'
import { Farming, FarmingConfigRequest } from './farming-schemas.ts'
import {
  activeMax,
  intervalSecondsMin,
  queryCharactersMax,
  readingFields,
  Schedule,
  scheduleFields,
  scheduleStatuses,
  schedulesMax,
  scheduleTypes,
  settableFields,
  strategySecondsMin,
  timezone,
} from './schedule-schemas.ts'

export const pageMax = 100

/** The fields of paging. Neither has a maximum: a page is cut to 100 entries, and a page past the end is empty. */
const paging = (limit: number) => ({
  skip: T.Optional(T.Integer({ minimum: 0, default: 0, description: 'Entries to pass over' })),
  limit: T.Optional(
    T.Integer({ minimum: 1, default: limit, description: `Entries per page; more than ${pageMax} are cut` }),
  ),
})
const scheduleId = T.String({ format: 'uuid', maxLength: 36, description: '`schedule_id` of a schedule' })
/** A strategy is checked with the markets of the venue. */
const venueFaults = [...readFaults, 'market_closed'] as const
const schedulePath = T.Object({ schedule_id: scheduleId })
const executionPath = T.Object({
  execution_id: T.String({ format: 'uuid', maxLength: 36, description: '`execution_id` of a run' }),
})
const expectedVersion = T.Optional(
  T.Integer({ minimum: 1, description: 'Refused with 409 `conflict` if the schedule has another version' }),
)
const examples = [
  { query: 'how did eth do since yesterday', schedule: 'every Monday at 09:00 New York time' },
  {
    type: 'dca',
    config: { asset: 'ETH', amount_usd: '20' },
    schedule: 'every Monday at 09:00 New York time',
    guards: { max_drawdown_pct: '10' },
  },
]

const about = 'Questions and orders at times to come, and the record of their runs.'

export const contract = group('schedules', about, {
  create: act('POST /schedule_chat', {
    summary: 'Have a question asked, an order given, or a strategy traded, at times to come',
    description: `Use it for what should happen without you: a report each morning, a purchase every Monday. Each run of a \`prompt\` is a chat that asks \`query\`; it trades by itself only what the query orders in full, within \`chat_per_day_usd\` of the policy. A strategy, of any other \`type\`, decides by its \`config\`; it begins on paper. A query that says a whole strategy becomes one. Without \`schedule\` the times are read from the query. A user has at most ${schedulesMax} schedules, ${activeMax} of them active. Next: \`schedules_activate\`, once each required item of \`setup_checklist\` is done, or \`status: active\` here.`,
    access: 'chat',
    body: T.Object(settableFields, { $id: 'ScheduleRequest', additionalProperties: false, examples }),
    output: Schedule,
    faults: ['limit_reached', 'not_found', 'insufficient_scope', 'asset_in_use', ...venueFaults],
  }),
  all: read('GET /get_schedule_chats', {
    summary: 'All your schedules, newest first',
    description:
      'Use it to see every schedule at once, or those of one status or type. Next: `schedules_get` has one with its runs.',
    access: 'read',
    query: T.Object({
      filter_type: T.Optional(
        OneOf(['all', ...scheduleStatuses, ...scheduleTypes], {
          description: 'A status or a type; left out: all',
        }),
      ),
    }),
    output: T.Object({ items: T.Array(Schedule), total: T.Integer() }, { $id: 'ScheduleList' }),
  }),
  update: act('PUT /update_schedule_chat', {
    summary: 'Change a schedule',
    description:
      'Use it to change what a schedule asks, or when; fields that are left out stay. A change of more than `title`, `notify` and `thread_id` makes another `version`, and an active schedule is paused until it is activated again, at once with `status: active`. A disabled or completed one becomes a draft. Runs under way keep their version, and what is open keeps its stop and target. `mode: live` lets a strategy trade that has run on paper. A schedule keeps its type. Next: `schedules_activate`.',
    access: 'chat',
    repeatable: true,
    body: T.Object(
      { schedule_id: scheduleId, expected_version: expectedVersion, ...settableFields },
      {
        $id: 'ScheduleUpdateRequest',
        additionalProperties: false,
        examples: [{ schedule_id: '0199c2f0-6a0e-7c1e-9d43-5f0f6c7a2b11', schedule: 'daily at 08:00' }],
      },
    ),
    output: Schedule,
    faults: ['not_found', 'conflict', 'limit_reached', 'insufficient_scope', 'asset_in_use', ...venueFaults],
  }),
  disable: act('PUT /disable_schedule_chats', {
    summary: 'End schedules, one, some or all',
    description:
      'Use it when a schedule should run no more. Once it has answered no run of them starts; one under way goes on, unless `cancel_running` or `positions: flatten` stops it. It works while the kill switch is set. Give exactly one of `schedule_ids`, `schedule_id` and `all`. Next: `schedules_update` makes a draft of one again.',
    access: 'chat',
    repeatable: true,
    rate: 'exit',
    body: T.Object(
      {
        schedule_ids: T.Optional(
          T.Array(scheduleId, { minItems: 1, maxItems: pageMax, description: 'These' }),
        ),
        schedule_id: T.Optional(scheduleId),
        all: T.Optional(T.Boolean({ description: 'true: all of yours' })),
        cancel_running: T.Optional(T.Boolean({ default: false, description: 'true: stop their runs, too' })),
        positions: T.Optional(
          OneOf(['keep', 'flatten'], {
            default: 'keep',
            description:
              'What becomes of what strategies have open: `keep` leaves it with its stop and target, `flatten` closes it, on paper and live, and stops their runs, too',
          }),
        ),
      },
      { $id: 'DisableSchedulesRequest', additionalProperties: false, examples: [{ all: true }] },
    ),
    output: T.Object(
      {
        disabled: T.Array(Text),
        already: T.Array(Text),
        not_found: T.Array(Text, { description: 'No schedules of yours' }),
        flatten_task_ids: T.Array(Text, { description: 'The tasks that close what was open' }),
      },
      { $id: 'DisabledSchedules' },
    ),
  }),
  list: read('GET /schedule-chat/list', {
    summary: 'Your schedules page by page, newest first',
    description:
      'Use it to see the active schedules, or those of another `status`. Next: `schedules_executions` has the runs of one.',
    access: 'read',
    query: T.Object({
      ...paging(10),
      status: T.Optional(
        OneOf(['all', ...scheduleStatuses], { default: 'active', description: 'Of this status' }),
      ),
    }),
    output: Page(Schedule, { $id: 'SchedulePage' }),
  }),
  get: read('GET /schedule-chat/schedule/{schedule_id}', {
    summary: 'One schedule, with its runs if you ask for them',
    description:
      'Use it to see what a schedule does, when it runs next, and what it lacks. `skip` and `limit` are of the runs. Next: `schedules_activate`, `schedules_pause` or `schedules_run`.',
    access: 'read',
    params: schedulePath,
    query: T.Object({
      ...paging(50),
      include_executions: T.Optional(T.Boolean({ default: false, description: 'true: with `executions`' })),
    }),
    output: T.Object(
      { ...scheduleFields, executions: T.Optional(ExecutionPage) },
      { $id: 'ScheduleWithExecutions' },
    ),
    faults: ['not_found'],
  }),
  activate: act('POST /schedule-chat/schedule/{schedule_id}/activate', {
    summary: 'Let a schedule run',
    description:
      'Use it once each required item of `setup_checklist` is done; otherwise `setup_incomplete` names what is missing. From now on it runs in your name, with your scopes of this moment. Where its runs order something, you need the scope of that; where one order may be above `approval_above_usd`, it answers with a task that waits until the person has approved them all at its `confirm_url`, for 90 days or until the next change. A market has one live strategy: `asset_in_use` has the `schedule_id` of the other one. Next: `schedules_executions` has what became of its runs.',
    access: 'chat',
    repeatable: true,
    params: schedulePath,
    body: T.Object(
      {
        expected_version: expectedVersion,
        waive_paper: T.Optional(
          T.Boolean({
            default: false,
            description:
              'true: a live strategy needs no run on paper; the person confirms that on a page of the gateway',
          }),
        ),
      },
      { $id: 'ScheduleActivateRequest', additionalProperties: false, examples: [{ expected_version: 1 }] },
    ),
    bodyOptional: true,
    output: orRequested(Schedule),
    faults: [
      'not_found',
      'conflict',
      'setup_incomplete',
      'limit_reached',
      'insufficient_scope',
      'asset_in_use',
      'step_up_required',
      'approval_required',
    ],
  }),
  pause: act('POST /schedule-chat/schedule/{schedule_id}/pause', {
    isAddition: true,
    summary: 'Let a schedule rest',
    description:
      'Use it to stop a schedule for a while. No run starts until `schedules_activate`, which goes on with the next time and makes up for none. Next: `schedules_activate`.',
    access: 'chat',
    repeatable: true,
    rate: 'exit',
    params: schedulePath,
    output: Schedule,
    faults: ['not_found', 'conflict'],
  }),
  run: act('POST /schedule-chat/schedule/{schedule_id}/run', {
    isAddition: true,
    summary: 'Run a schedule once, now',
    description:
      'Use it to try a schedule before it is activated, or between its times, which stay as they are. It costs what a run costs. Next: `schedules_execution` with the `task_id` as `execution_id`.',
    access: 'chat',
    rate: 'money',
    params: schedulePath,
    output: TaskResponse,
    faults: ['not_found', 'conflict', 'insufficient_credits', 'insufficient_scope'],
  }),
  dayTradeFarming: read('GET /schedule-chat/schedule/{schedule_id}/day-trade-farming', {
    isAddition: true,
    summary: 'The day trades of a schedule',
    description:
      'Use it to see what a schedule of the type `day_trade_farming` trades, with which leverage, and how much a day. Next: `schedules_set_day_trade_farming` changes it.',
    access: 'read',
    params: schedulePath,
    output: Farming,
    faults: ['not_found', 'conflict'],
  }),
  setDayTradeFarming: act('PUT /schedule-chat/schedule/{schedule_id}/day-trade-farming', {
    isAddition: true,
    summary: 'Set the day trades of a schedule, and let them run or rest',
    description:
      'Use it to change what a schedule of the type `day_trade_farming` trades. `enabled: true` activates it as `status: active` of `schedules_update` does: where something is missing it rests, and `status_reason` says what. A change makes another `version`. Next: `schedules_activate` names what is missing.',
    access: 'chat',
    repeatable: true,
    params: schedulePath,
    body: T.Object(
      {
        enabled: T.Boolean({ description: 'true: it runs; false: it rests as a draft' }),
        farming_config: FarmingConfigRequest,
        expected_version: expectedVersion,
      },
      {
        $id: 'DayTradeFarmingConfigBody',
        additionalProperties: false,
        examples: [{ enabled: false, farming_config: { asset: 'hl:perp:BTC', order_notional_usd: 200 } }],
      },
    ),
    output: Farming,
    faults: ['not_found', 'conflict', 'limit_reached', 'insufficient_scope', 'asset_in_use', ...venueFaults],
  }),
  executions: read('GET /schedule-chat/schedule/{schedule_id}/executions', {
    summary: 'The runs of a schedule, newest first',
    description:
      'Use it to see what became of the runs of a schedule, and which of its times were skipped, and why. `fields=full` adds question and answer. Next: `schedules_execution` has one of them whole.',
    access: 'read',
    params: schedulePath,
    query: T.Object({
      ...paging(20),
      execution_type: T.Optional(
        OneOf([...executionTypes, 'paper'], {
          description: 'Of this type alone; `paper`: those on paper, of whatever type',
        }),
      ),
      fields: T.Optional(
        OneOf(['summary', 'full'], {
          default: 'summary',
          description: '`full`: with question, answer and files',
        }),
      ),
      status: T.Optional(
        OneOf(['pending', 'running', 'completed', 'failed', 'cancelled'], {
          description: 'Of this status alone',
        }),
      ),
    }),
    output: ExecutionPage,
    faults: ['not_found'],
  }),
  execution: read('GET /schedule-chat/execution/{execution_id}', {
    summary: 'One run, with its question, answer and files',
    description:
      'Use it to read what a run has found, and what it cost. Next: `schedules_execution_events` has its steps, `chat_thread` with its `chat_id` the conversation, and `schedules_rate` says what you think of it.',
    access: 'read',
    params: executionPath,
    output: Execution,
    faults: ['not_found'],
  }),
  executionEvents: read('GET /schedule-chat/execution/{execution_id}/events', {
    summary: 'What a run did, step by step',
    description:
      'Use it to follow a run, or to see why it ended as it did. Events are numbered from 1 without gaps, and `done` or `error` is the last one. Next: with `after`, the number of the last event that you have, ask for those that are new.',
    access: 'read',
    params: executionPath,
    query: T.Object({
      ...paging(10),
      after: T.Optional(
        T.Integer({
          minimum: 0,
          maximum: 1_000_000,
          default: 0,
          description: 'Events with a higher number alone',
        }),
      ),
    }),
    output: EventPage,
    faults: ['not_found'],
  }),
  transactions: read('GET /schedule-chat/schedule/{schedule_id}/transactions', {
    summary: 'What the runs of a schedule have moved, newest first',
    description:
      'Use it to see every task that a run has started by itself, or that you have accepted from one, and every fill of a strategy, on paper and live. Next: `tasks_get` has a task whole.',
    access: 'read',
    params: schedulePath,
    query: T.Object(paging(15)),
    output: TransactionPage,
    faults: ['not_found'],
  }),
  recommendations: read('GET /schedule-chat/schedule/{schedule_id}/recommendations', {
    summary: 'What to change about a schedule, and what its runs have recommended',
    description:
      'Use it when runs fail or are skipped, and to find what waits for you. There are at most five, from the records of the runs alone. `refresh=true` has them made again; while `refreshing` is true they are. Next: `schedules_delete_recommendation` removes one for good.',
    access: 'read',
    params: schedulePath,
    query: T.Object({
      refresh: T.Optional(T.Boolean({ default: false, description: 'true: make them again' })),
    }),
    output: RecommendationList,
    faults: ['not_found', 'insufficient_scope'],
  }),
  refreshRecommendations: task('POST /schedule-chat/schedule/{schedule_id}/recommendations/refresh', {
    summary: 'Make the recommendations of a schedule again',
    description:
      'Use it after runs, or after a change. It costs nothing; while one is made, the answer is that one. Next: `schedules_recommendations`, once the task has ended.',
    access: 'chat',
    repeatable: true,
    waitSeconds: 60,
    taskKind: 'recommendations_refresh',
    params: schedulePath,
    output: TaskResponse,
    result: T.Object(
      { count: T.Integer({ description: 'How many there are' }) },
      { $id: 'RecommendationsRefreshed', additionalProperties: true },
    ),
    faults: ['not_found'],
  }),
  deleteRecommendation: act(
    'DELETE /schedule-chat/schedule/{schedule_id}/recommendations/{recommendation_id}',
    {
      summary: 'Remove a recommendation from a schedule',
      description:
        'Use it for a recommendation that you do not want: it is not made again. What a chat has recommended stays open there. Next: `schedules_recommendations`.',
      access: 'chat',
      repeatable: true,
      params: T.Object({
        schedule_id: scheduleId,
        recommendation_id: T.String({ format: 'uuid', maxLength: 36, description: 'Its `id`' }),
      }),
      output: T.Object(
        { recommendation_id: Text, deleted: T.Boolean() },
        { $id: 'ScheduleRecommendationDeleted' },
      ),
      faults: ['not_found'],
    },
  ),
  artifacts: read('GET /schedule-chat/schedule/{schedule_id}/artifacts', {
    summary: 'The files that the runs of a schedule have made, newest first',
    description:
      'Use it to get reports and charts. Only you get the links; each lasts for 15 minutes, and opens the file for everyone who has it. Next: fetch a `url` before its `expires_at`.',
    access: 'read',
    params: schedulePath,
    output: ArtifactList,
    faults: ['not_found'],
  }),
  rate: act('POST /schedule-chat/execution/{execution_id}/rate', {
    summary: 'Say what you think of a run',
    description:
      'Use it once a run has ended. `up` counts as 5 and `down` as 1; the last rating counts. Next: `schedules_recommendations` takes it into account.',
    access: 'chat',
    repeatable: true,
    params: executionPath,
    body: T.Object(
      {
        rating: T.Unsafe<number | 'up' | 'down'>({
          anyOf: [
            { type: 'integer', minimum: 1, maximum: 5 },
            { type: 'string', enum: ['up', 'down'] },
          ],
          description: '1 to 5, `up` or `down`',
        }),
        comment: T.Optional(T.String({ maxLength: 2_000, description: 'Why' })),
      },
      { $id: 'ScheduleRateRequest', additionalProperties: false, examples: [{ rating: 'up' }] },
    ),
    output: Rated,
    faults: ['not_found', 'conflict'],
  }),
  preview: read('GET /schedule-chat/preview', {
    isAddition: true,
    summary: 'What a sentence would become as a schedule',
    description: `Use it before \`schedules_create\`: it reads the times of a sentence, says when it would run, and what is left of it to ask. A sentence that says a strategy is shown with its \`config\` and \`guards\`. It stores nothing and costs nothing. Times are at least ${intervalSecondsMin} seconds apart, those of a strategy ${strategySecondsMin}. Next: \`schedules_create\` with its \`query\` and \`schedule\`.`,
    access: 'read',
    query: T.Object({
      text: T.String({
        minLength: 1,
        maxLength: queryCharactersMax,
        pattern: '\\S',
        description: 'A sentence with the times in it',
        examples: ['every Monday at 09:00 show me how eth did'],
      }),
      timezone: T.Optional(timezone),
    }),
    output: T.Object(
      {
        ...readingFields,
        query: Nullable(Text),
        questions: T.Array(Text),
        unread: T.Array(Text),
        examples: T.Array(T.String(), { description: 'Schedules as they may be written' }),
      },
      { $id: 'SchedulePreview' },
    ),
    faults: venueFaults,
  }),
})

type Entries = (typeof contract)['entries']
export type ScheduleInputOf<K extends keyof Entries> = InputOf<Entries[K]>
