import { exactlyOneOf, invalid } from '#kernel/contract/fault.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'
import type { ScheduleInputOf } from './contract.ts'
import { type Calendar, isElapsed, type Refusal } from './recurrence/calendar-types.ts'
import { type ReadOptions, readSchedule } from './recurrence/read-schedule.ts'
import { catchUpSecondsDefault, intervalSecondsMin } from './schedule-schemas.ts'
import { type ReadCalendar, splitSentence } from './split-sentence.ts'

/** The content of a version of a schedule, its query and its times, as read from an input. */
export type Plan = {
  query: string
  agent: Agent
  calendar: Calendar | null
  maxRuns: number | null
  guards: { cooldown_seconds?: number }
  onMissed: 'run_latest' | 'skip'
  catchUpSeconds: number
  /** Notes about words that were read in another sense, such as `EST` as America/New_York. */
  notes: string[]
}
type PlanInput = Omit<ScheduleInputOf<'create'>, 'status'>

const defaultAgent: Agent = 'ProAgent'

export const refused = ({ field, type, msg, ctx }: Refusal) => invalid(field, type, msg, { ...ctx })

type BoundsInput = {
  timezone?: string | undefined
  starts_at?: string | null | undefined
  ends_at?: string | null | undefined
}
const optionsOf = ({ timezone, starts_at, ends_at }: BoundsInput, now: Date): ReadOptions => ({
  now,
  secondsMin: intervalSecondsMin,
  ...(timezone !== undefined && { timezone }),
  ...(starts_at && { startsAt: starts_at }),
  ...(ends_at && { endsAt: ends_at }),
})

export function queryIn({ query, prompt }: PlanInput): string | undefined {
  if (query !== undefined && prompt !== undefined) throw exactlyOneOf('query', 'prompt', { hasBoth: true })
  return (query ?? prompt)?.trim()
}

/** Returns the plan of a new schedule; if `type` is `prompt`, a query without times becomes a draft. */
export function newPlan(input: PlanInput, now: Date): Plan {
  const query = queryIn(input)
  if (query === undefined) throw exactlyOneOf('query', 'prompt', { hasBoth: false })
  const options = optionsOf(input, now)
  const common = {
    agent: input.agent ?? defaultAgent,
    maxRuns: input.max_runs ?? null,
    guards: input.guards ?? {},
    onMissed: input.on_missed ?? ('run_latest' as const),
    catchUpSeconds: input.catch_up_seconds ?? catchUpSecondsDefault,
  }
  if (input.schedule !== undefined) {
    const reading = readSchedule(input.schedule, options)
    if ('refusal' in reading) throw refused(reading.refusal)
    return { ...common, query, ...reading }
  }
  const sentence = splitSentence(query, options)
  if ('calendar' in sentence) return { ...common, ...sentence }
  if (input.type === 'prompt' && sentence.refusal.type === 'not_understood')
    return { ...common, query, calendar: null, notes: [] }
  throw refused(sentence.refusal)
}

/** Returns the stored calendar with another zone or other bounds; null in the input removes a bound. */
function changedCalendar(stored: Calendar | null, input: PlanInput, now: Date): ReadCalendar | undefined {
  const { schedule, timezone, starts_at, ends_at } = input
  const isChanged = [schedule, timezone, starts_at, ends_at].some((each) => each !== undefined)
  if (!isChanged) return undefined
  if (schedule === undefined && stored === null)
    throw invalid('schedule', 'missing', 'Field required: add `schedule`, because the draft has none yet')
  const { timezone: zone, starts_at: starts, ends_at: ends, ...rest } = stored ?? {}
  // The start of an interval belongs to that interval, so another calendar does not take it over.
  const ownStart = schedule !== undefined && stored && isElapsed(stored) ? undefined : starts
  const bounds = {
    timezone: timezone ?? zone,
    starts_at: starts_at === undefined ? ownStart : starts_at,
    ends_at: ends_at === undefined ? ends : ends_at,
  }
  const reading = readSchedule(schedule ?? (rest as Calendar), optionsOf(bounds, now))
  if ('refusal' in reading) throw refused(reading.refusal)
  return reading
}

/** Returns the plan after an edit; fields that the input leaves out keep their stored values. */
export function changedPlan(stored: Plan, input: PlanInput, now: Date): Plan {
  return {
    query: queryIn(input) ?? stored.query,
    agent: input.agent ?? stored.agent,
    calendar: stored.calendar,
    notes: stored.notes,
    ...changedCalendar(stored.calendar, input, now),
    maxRuns: input.max_runs === undefined ? stored.maxRuns : input.max_runs,
    guards: input.guards ?? stored.guards,
    onMissed: input.on_missed ?? stored.onMissed,
    catchUpSeconds: input.catch_up_seconds ?? stored.catchUpSeconds,
  }
}
