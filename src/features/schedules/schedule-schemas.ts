import {
  GuardsRequest,
  GuardsShown,
  StrategyFieldsRequest,
  StrategyFieldsShown,
  strategyTypes,
} from '#engines/strategy-terms/strategy-schemas.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import * as T from '#kernel/contract/schema.ts'
import {
  DecIn,
  DecOrNull,
  Nullable,
  OneOf,
  RatioOrNull,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
} from '#kernel/contract/wire-types.ts'
import { decimalPattern } from '#kernel/money/money.ts'
import { agents } from '#kernel/wire/chat-answerer.ts'
import { weekdays } from './recurrence/calendar-types.ts'
import { strategyViewFields } from './strategy-view-schemas.ts'

/** The shapes of the fields that a client sets, and of the schedule in answers. */

export const queryCharactersMax = 2_000
export const schedulesMax = 100
export const activeMax = 20
/** Two chats of a schedule are at least this many seconds apart; runs of strategies ask no chat. */
export const intervalSecondsMin = 300
export const strategySecondsMin = 60
export const catchUpSecondsDefault = 600
const catchUpSecondsMax = 86_400
const everySecondsMax = 365 * 86_400

export const scheduleStatuses = ['draft', 'active', 'paused', 'disabled', 'completed'] as const
export const modes = ['paper', 'live'] as const
export const scheduleTypes = ['prompt', ...strategyTypes] as const
/** The paper account of a strategy begins with this money. */
export const paperBalanceDefault = '1000'
export const healthStates = ['on_track', 'degraded', 'blocked', 'paused', 'research_only'] as const

const timeIn = (description: string) => T.String({ format: 'date-time', maxLength: 40, description })
const timeOfDay = (description: string) =>
  T.String({ pattern: '^([01]\\d|2[0-3]):[0-5]\\d$', maxLength: 5, description, examples: ['09:00'] })

const calendarFields = {
  type: OneOf(['once', 'interval', 'calendar', 'cron'], {
    description:
      '`once`: at one instant; `interval`: every so many seconds; `calendar`: at local times; `cron`: five fields',
  }),
  at: T.Optional(
    T.String({
      maxLength: 40,
      description: 'Of `once`: a time with its offset, or a local one of `timezone`',
      examples: ['2026-12-24T09:00:00.000Z'],
    }),
  ),
  every_seconds: T.Optional(
    T.Integer({
      minimum: 1,
      maximum: everySecondsMax,
      description: 'Of `interval`: elapsed seconds from `starts_at`, also where clocks are changed',
    }),
  ),
  from: T.Optional(timeOfDay('Of `interval`: from this local time on, each day')),
  to: T.Optional(timeOfDay('Of `interval`: until this local time')),
  times: T.Optional(
    T.Array(timeOfDay('A local time'), {
      minItems: 1,
      maxItems: 24,
      description: 'Of `calendar`: local times, each once a day',
    }),
  ),
  days: T.Optional(
    T.Array(OneOf(weekdays), {
      minItems: 1,
      maxItems: 7,
      description: 'On these days of the week; either this, `month_days` or `nth`',
    }),
  ),
  month_days: T.Optional(
    T.Array(T.Integer({ minimum: -1, maximum: 31 }), {
      minItems: 1,
      maxItems: 32,
      description: 'On these days of the month; -1 is the last one, which also stands for days beyond it',
    }),
  ),
  nth: T.Optional(
    T.Object(
      {
        n: T.Integer({ minimum: -1, maximum: 4, description: '1 to 4, or -1 for the last one' }),
        day: OneOf(weekdays, { description: 'Day of the week' }),
      },
      { additionalProperties: false, description: 'On one such day of each month: the first Monday' },
    ),
  ),
  months: T.Optional(
    T.Array(T.Integer({ minimum: 1, maximum: 12 }), {
      minItems: 1,
      maxItems: 12,
      description: 'In these months alone',
    }),
  ),
  cron: T.Optional(
    T.String({
      maxLength: 200,
      description: 'Of `cron`: minute, hour, day of the month, month, day of the week; no seconds',
      examples: ['0 9 * * mon'],
    }),
  ),
}
export const timezone = T.String({
  minLength: 1,
  maxLength: 64,
  description: 'IANA name of the zone of local times; left out: the one of the words, or UTC',
  examples: ['America/New_York'],
})

const boundFields = {
  starts_at: T.Optional(timeIn('No run is before it; intervals are counted from it')),
  ends_at: T.Optional(timeIn('No run is after it')),
}
const CalendarIn = T.Object(
  { ...calendarFields, ...boundFields, timezone: T.Optional(timezone) },
  { $id: 'ScheduleCalendarRequest', additionalProperties: false },
)
const CalendarOut = T.Object(
  {
    ...calendarFields,
    ...boundFields,
    timezone: Text,
  },
  { $id: 'ScheduleCalendar' },
)

const query = T.String({
  minLength: 1,
  maxLength: queryCharactersMax,
  pattern: '\\S',
  description: 'What each run asks or orders, in plain words',
  examples: ['how did eth do since yesterday'],
})
const phrase = T.String({
  minLength: 1,
  maxLength: 200,
  pattern: '\\S',
  description: 'When it runs, in plain words, as five fields of cron, or as an object',
  examples: ['every Monday at 09:00 New York time'],
})
const notify = T.Unsafe<boolean | 'failures'>({
  anyOf: [{ type: 'boolean' }, { type: 'string', enum: ['failures'] }],
  description: 'true: an event for each run; `failures`: for those that fail or are skipped; false: none',
})
const onMissed = OneOf(['run_latest', 'skip'], {
  description: 'What becomes of the newest slot that was missed, such as while the gateway was away',
})
const catchUpSeconds = T.Integer({
  minimum: 0,
  maximum: catchUpSecondsMax,
  description: 'A slot that was missed by more is skipped',
})
const type = OneOf(scheduleTypes, {
  description:
    '`prompt`: each run is a chat; the others are strategies, which trade by rules. Left out: what the words say',
})
const mode = OneOf(modes, {
  description:
    '`paper`: fills are simulated at the live book; `live`: runs act on the account. A strategy begins with `paper`; a `prompt` is `live`',
})
const budget = DecIn({
  exclusiveMinimum: 0,
  maximum: 100_000_000,
  places: 6,
  description:
    'Of a strategy: what all its entries may be worth together, in USD; `live` needs one, null removes it',
  example: '500',
})
const threadId = T.String({
  format: 'uuid',
  maxLength: 36,
  description: 'The thread of chats that runs continue; left out: each run begins a new one',
})
const title = T.String({
  minLength: 1,
  maxLength: 120,
  pattern: '\\S',
  description: 'Your name for it',
  examples: ['Monday report'],
})

/** The fields of both `create` and `update`; none has a default, because an update leaves out unchanged ones. */
export const settableFields = {
  query: T.Optional(query),
  prompt: T.Optional(
    T.String({
      minLength: 1,
      maxLength: queryCharactersMax,
      pattern: '\\S',
      description: 'The same as `query`: give one of them',
      examples: ['show me how eth did'],
    }),
  ),
  title: T.Optional(title),
  type: T.Optional(type),
  config: T.Optional(StrategyFieldsRequest),
  schedule: T.Optional(T.Union([phrase, CalendarIn], { description: 'When it runs: words, or an object' })),
  timezone: T.Optional(timezone),
  agent: T.Optional(OneOf(agents)),
  mode: T.Optional(mode),
  max_runs: T.Optional(
    Nullable(T.Integer({ minimum: 1, maximum: 1_000_000, description: 'It ends after so many runs' })),
  ),
  starts_at: T.Optional(Nullable(timeIn('No run is before it'))),
  ends_at: T.Optional(Nullable(timeIn('No run is after it'))),
  budget_usd: T.Optional(Nullable(budget)),
  paper_balance_usd: T.Optional(
    DecIn({
      minimum: 10,
      maximum: 100_000_000,
      places: 6,
      description: `Of a strategy: what its paper account begins with, in USD; default ${paperBalanceDefault}`,
      example: paperBalanceDefault,
    }),
  ),
  guards: T.Optional(GuardsRequest),
  on_missed: T.Optional(onMissed),
  catch_up_seconds: T.Optional(catchUpSeconds),
  notify: T.Optional(notify),
  thread_id: T.Optional(Nullable(threadId)),
  status: T.Optional(
    OneOf(['draft', 'active'], { description: '`active`: it is activated, if nothing is missing' }),
  ),
}

export const setupKeys = [
  'schedule_valid',
  'credits_available',
  'orders_within_limit',
  'backtest_done',
  'paper_done',
  'loss_guard',
  'budget_set',
  'no_foreign_position',
  'asset_free',
  'approved',
] as const
const SetupItem = T.Object(
  {
    key: OneOf(setupKeys),
    label: Text,
    required: T.Boolean(),
    done: T.Boolean(),
    how: TextOrNull,
  },
  { $id: 'ScheduleSetupItem' },
)
const usd = (description: string) =>
  T.String({ pattern: decimalPattern, description: `${description}, in USD` })
const Compiled = T.Object(
  {
    operations: T.Array(Text),
    per_run_max_usd: usd('What one run may spend at most'),
    per_day_max_usd: usd('What all runs of a day may spend at most'),
    unread: T.Array(Text),
    notes: T.Array(Text),
  },
  { $id: 'ScheduleCompiled' },
)
/** The fields that both a preview of words and a stored schedule show. */
export const readingFields = {
  query: T.String({ description: 'What each run asks or orders, or what the strategy does, in words' }),
  type,
  schedule: Nullable(CalendarOut),
  timezone: Nullable(T.String({ description: 'IANA name of its zone' })),
  description: Nullable(T.String({ description: 'When it runs, in words; null without a schedule' })),
  next_runs: T.Array(Time),
  next_runs_local: T.Array(Text),
  compiled: Compiled,
  config: Nullable(StrategyFieldsShown, { description: 'What the strategy does; null: it is a prompt' }),
  guards: GuardsShown,
  budget_usd: DecOrNull,
}

export const scheduleFields = {
  schedule_id: Text,
  version: T.Integer({ description: 'Counts the edits; each run has the version of its time' }),
  title: T.String({ description: 'Your name for it' }),
  ...readingFields,
  agent: OneOf(agents),
  mode,
  max_runs: Nullable(T.Integer({ description: 'It ends after so many runs; null: never' })),
  starts_at: TimeOrNull,
  ends_at: TimeOrNull,
  paper_balance_usd: DecOrNull,
  on_missed: onMissed,
  catch_up_seconds: catchUpSeconds,
  notify,
  thread_id: TextOrNull,
  setup_checklist: T.Array(SetupItem),
  health: OneOf(healthStates, {
    description:
      '`blocked`: a run lacks something; `degraded`: runs fail or are skipped; `research_only`: all is well, and nothing is traded',
  }),
  health_reason: TextOrNull,
  status: OneOf(scheduleStatuses),
  status_reason: Nullable(
    T.String({
      description:
        'Why it has this status: a code, a colon and a sentence; null where nothing has to be said',
    }),
  ),
  next_run_at: TimeOrNull,
  last_run_at: TimeOrNull,
  run_count: T.Integer(),
  skipped_count: T.Integer(),
  success_rate: RatioOrNull,
  credits_per_run: T.Integer(),
  ...strategyViewFields,
  created_at: Time,
  updated_at: Time,
  activated_at: TimeOrNull,
}
export const Schedule = T.Object(scheduleFields, { $id: 'Schedule' })
setColumns(Schedule, ['schedule_id', 'title', 'type', 'status', 'next_run_at', 'health'])
export type ScheduleView = T.Static<typeof Schedule>
export type SetupItemView = T.Static<typeof SetupItem>

export const scheduleFacts = {
  schedules: {
    types: scheduleTypes,
    interval_seconds_min: intervalSecondsMin,
    strategy_interval_seconds_min: strategySecondsMin,
    active_max: activeMax,
    schedules_max: schedulesMax,
    query_characters_max: queryCharactersMax,
  },
}
