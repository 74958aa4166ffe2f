import type { Calendar } from './recurrence/calendar-types.ts'
import { comingRuns } from './recurrence/shown-times.ts'
import type { ScheduleView, SetupItemView } from './schedule-schemas.ts'
import type { ScheduleRow } from './store.ts'

/** This module says which things a schedule lacks before it can run, and how well its runs go. */

/** The facts about a user that are the same for all of the user's schedules at one moment. */
export type UserFacts = {
  credits: number
  /** The value that chats may start by themselves in 24 hours, in USD. */
  chatPerDayUsd: string
  perTransactionUsd: string
  /** The value in USD above which an order waits for a person; null lets no order wait. */
  approvalAboveUsd: string | null
  /** How many decimals the sizes of the venue's markets have; left out while they are not known. */
  sizeDecimals?: Readonly<Record<string, number>>
}
/** The operations that a query was understood to order; they are stored with its version. */
export type Compiled = Ordered & { notes: string[] }
/** The operations that a query orders, and whether any of them spends. */
export type Ordered = { operations: string[]; isSpending: boolean }
export type SetupState = Pick<ScheduleRow, 'max_runs' | 'run_count'> & {
  calendar: Calendar | null
  compiled: Compiled
  creditsPerRun: number
  facts: UserFacts
  now: Date
}

export const isOver = ({ max_runs, run_count }: Pick<ScheduleRow, 'max_runs' | 'run_count'>): boolean =>
  max_runs !== null && run_count >= max_runs

const howToTime = (state: SetupState): string => {
  if (isOver(state)) return 'It has run as often as `max_runs` says: raise it by `schedules_update`'
  return state.calendar
    ? 'None of its times is to come: change `schedule` by `schedules_update`'
    : 'Say when it runs: add `schedule` by `schedules_update`'
}

type Item = SetupItemView & { how: string }

export function setupItems(state: SetupState): SetupItemView[] {
  const { calendar, compiled, creditsPerRun, facts, now } = state
  const hasTime = calendar !== null && !isOver(state) && comingRuns(calendar, now).length > 0
  const items: Item[] = [
    {
      key: 'schedule_valid',
      label: 'It has a time to come',
      required: true,
      done: hasTime,
      how: howToTime(state),
    },
    {
      key: 'credits_available',
      label: `There are credits for a run, which takes ${creditsPerRun}`,
      required: true,
      done: facts.credits >= creditsPerRun,
      how: 'Buy a pack by `credits_recharge`',
    },
  ]
  if (compiled.isSpending)
    items.push({
      key: 'orders_within_limit',
      label: 'The limit for chats lets a run start what the query orders',
      required: false,
      done: facts.chatPerDayUsd !== '0',
      how: 'A person raises `chat_per_day_usd`; until then a run recommends what the query orders',
    })
  return items.map(({ how, ...item }) => ({ ...item, how: item.done ? null : how }))
}

type Health = Pick<ScheduleView, 'health' | 'health_reason'>

/** A schedule's health is judged by this many of its newest runs. */
const judgedRuns = 5

export function healthOf(
  { status, status_reason, recent }: Pick<ScheduleRow, 'status' | 'status_reason' | 'recent'>,
  items: readonly SetupItemView[],
  { operations }: Compiled,
): Health {
  if (status === 'paused') return { health: 'paused', health_reason: status_reason }
  const missing = items.find(({ required, done }) => required && !done)
  if (missing && (status === 'draft' || status === 'active'))
    return { health: 'blocked', health_reason: missing.how }
  const runs = recent.slice(0, judgedRuns)
  if (runs.find((each) => each !== 'skipped' && each !== 'running' && each !== 'pending') === 'failed')
    return { health: 'degraded', health_reason: 'The last run failed: `schedules_executions` says why' }
  if (runs.includes('skipped'))
    return {
      health: 'degraded',
      health_reason: `One of the last ${judgedRuns} times was skipped: \`schedules_executions\` says why`,
    }
  const limit = items.find(({ key }) => key === 'orders_within_limit')
  if (operations.length === 0 || limit?.done === false)
    return { health: 'research_only', health_reason: limit?.how ?? null }
  return { health: 'on_track', health_reason: null }
}

/** Below this number of ended runs a success rate says nothing. */
const ratedMin = 5

export function successRate(recent: readonly string[]): number | null {
  const ended = recent.filter((each) => each === 'completed' || each === 'failed')
  if (ended.length < ratedMin) return null
  return ended.filter((each) => each === 'completed').length / ended.length
}
