import { areNoLooser } from '#engines/strategy-terms/guard-config.ts'
import type { GuardsInput } from '#engines/strategy-terms/strategy-schemas.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { toMicros } from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { hasLossGuard, lossGuards } from './loss-guards.ts'
import type { Calendar } from './recurrence/calendar-types.ts'
import { comingRuns } from './recurrence/shown-times.ts'
import type { ScheduleView, SetupItemView } from './schedule-schemas.ts'
import type { ScheduleRow } from './store.ts'
import type { Compiled } from './strategy-orders.ts'

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
  /** The perpetual markets in which the account has a position; null or absent where the venue has not said. */
  positions?: readonly string[] | null
}
export type SetupState = Pick<
  ScheduleRow,
  | 'type'
  | 'mode'
  | 'status'
  | 'max_runs'
  | 'run_count'
  | 'budget_usd'
  | 'authority'
  | 'backtested_at'
  | 'papered_at'
  | 'markets_in_use'
  | 'live_guards'
  | 'is_open'
> & {
  calendar: Calendar | null
  compiled: Compiled
  guards: GuardsInput
  creditsPerRun: number
  facts: UserFacts
  /** The time by the clock of schedules, and by that of tasks, which only the local world moves apart. */
  now: Date
  taskNow: Date
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
  const items = [timeItem(state), ...(state.type === 'prompt' ? promptItems(state) : strategyItems(state))]
  return items.map(({ how, ...item }) => ({ ...item, how: item.done ? null : how }))
}

function timeItem(state: SetupState): Item {
  const { calendar, now } = state
  return {
    key: 'schedule_valid',
    label: 'It has a time to come',
    required: true,
    done: calendar !== null && !isOver(state) && comingRuns(calendar, now).length > 0,
    how: howToTime(state),
  }
}

function promptItems({ compiled, creditsPerRun, facts }: SetupState): Item[] {
  const credits: Item = {
    key: 'credits_available',
    label: `There are credits for a run, which takes ${creditsPerRun}`,
    required: true,
    done: facts.credits >= creditsPerRun,
    how: 'Buy a pack by `credits_recharge`, or a plan by `subscriptions_checkout`',
  }
  if (!compiled.isSpending) return [credits]
  return [
    credits,
    {
      key: 'orders_within_limit',
      label: 'The limit for chats lets a run start what the query orders',
      required: false,
      done: facts.chatPerDayUsd !== '0',
      how: 'A person raises `chat_per_day_usd`; until then a run recommends what the query orders',
    },
  ]
}

/** A strategy on paper needs nothing but its times; one that trades needs evidence, bounds and free markets. */
const strategyItems = (state: SetupState): Item[] =>
  state.mode === 'paper' ? [] : [...evidenceItems(state), ...boundItems(state), ...accountItems(state)]

const evidenceDays = 7
const evidenceMs = evidenceDays * 86_400_000

/**
 * A version that was active live is evidence for one that decides the same and is no less guarded: a tighter guard needs
 * no other run on paper.
 */
function evidenceItems(state: SetupState): Item[] {
  const { live_guards: before, compiled, backtested_at, papered_at, now, taskNow } = state
  const wasLive = before !== null && compiled.guards !== undefined && areNoLooser(compiled.guards, before)
  const isRecent = (at: Date | null, until: Date) =>
    at !== null && until.getTime() - at.getTime() <= evidenceMs
  return [
    {
      key: 'backtest_done',
      label: `A backtest of this configuration and these guards ended in the last ${evidenceDays} days`,
      required: true,
      done: wasLive || isRecent(backtested_at, taskNow),
      how: 'Run `strategies_backtest` with the same `type`, `config` and `guards`',
    },
    {
      key: 'paper_done',
      label: `A run on paper with this configuration and these guards decided in the last ${evidenceDays} days`,
      required: true,
      done: wasLive || isRecent(papered_at, now),
      how: 'Set `mode` to `paper` by `schedules_update`, then `schedules_run`; or a person waives it by `waive_paper`',
    },
  ]
}

function boundItems({ guards, budget_usd, compiled, facts }: SetupState): Item[] {
  const { runMaxUsd = '0' } = compiled
  return [
    {
      key: 'loss_guard',
      label: 'A guard bounds the loss',
      required: true,
      done: hasLossGuard(guards),
      how: `Set one of ${lossGuards.map((name) => `\`${name}\``).join(', ')} in \`guards\``,
    },
    {
      key: 'budget_set',
      label: 'A budget bounds all entries together',
      required: true,
      done: budget_usd !== null,
      how: 'Set `budget_usd`',
    },
    {
      key: 'orders_within_limit',
      label: `The policy allows an order of ${runMaxUsd} USD, the most of one run`,
      required: false,
      done: compareDecimals(runMaxUsd, facts.perTransactionUsd) <= 0,
      how: `Orders above \`per_transaction_usd\` of the policy, ${facts.perTransactionUsd} USD, are refused: order less, or a person raises it`,
    },
  ]
}

function accountItems(state: SetupState): Item[] {
  const { compiled, facts, markets_in_use: used, status, is_open: isOpen } = state
  const inUse = Object.entries(used ?? {})
  const mayFollow = status === 'draft' || status === 'paused'
  const foreign = mayFollow && !isOpen ? foreignPositions(compiled, facts) : []
  return [
    {
      key: 'no_foreign_position',
      label: 'The account has no position in its markets that it has not opened',
      required: true,
      done: foreign !== null && foreign.length === 0,
      how:
        foreign === null
          ? 'The venue does not answer now: try again in a few seconds'
          : `Close what the account has in ${foreign.join(', ')}: \`perp_close\``,
    },
    {
      key: 'asset_free',
      label: 'No other strategy trades its markets live',
      required: true,
      done: inUse.length === 0,
      how: `Pause the schedule that does: ${inUse.map(([market, id]) => `${id} trades ${market}`).join(', ')}`,
    },
    {
      key: 'approved',
      label: 'A person has approved what one run may spend, where that is needed',
      required: false,
      done: isApproved(state),
      how: '`schedules_activate` asks the person, who approves once for all runs',
    },
  ]
}

/** Returns the markets of a strategy in which the account has a position; null while the venue does not say. */
function foreignPositions({ assets = [] }: Compiled, { positions }: UserFacts): string[] | null {
  return positions ? assets.filter((asset) => positions.includes(asset)) : null
}

function isApproved({ compiled, facts, authority, taskNow }: SetupState): boolean {
  const { approvalAboveUsd, perTransactionUsd } = facts
  const { runMaxUsd = '0' } = compiled
  if (approvalAboveUsd === null) return true
  const maxUsd = compareDecimals(runMaxUsd, perTransactionUsd) < 0 ? runMaxUsd : perTransactionUsd
  if (compareDecimals(maxUsd, approvalAboveUsd) <= 0) return true
  const { approvedMicros, approvedUntil } = (authority ?? {}) as JsonObject
  return (
    typeof approvedMicros === 'string' &&
    BigInt(approvedMicros) >= toMicros(maxUsd) &&
    new Date(String(approvedUntil)) > taskNow
  )
}

type Health = Pick<ScheduleView, 'health' | 'health_reason'>

/** A schedule's health is judged by this many of its newest runs. */
const judgedRuns = 5

export function healthOf(
  { type, status, status_reason, recent }: Pick<ScheduleRow, 'type' | 'status' | 'status_reason' | 'recent'>,
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
  if (type !== 'prompt')
    return limit?.done === false
      ? { health: 'degraded', health_reason: limit.how }
      : { health: 'on_track', health_reason: null }
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
