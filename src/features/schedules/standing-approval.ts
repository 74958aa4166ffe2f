import type { StrategyType } from '#engines/strategy-terms/strategy-schemas.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { sha256 } from '#kernel/id.ts'
import { toMicros } from '#kernel/money/money.ts'
import type { ActRequest } from '#kernel/task/act-approval-request.ts'
import { approvalDetail } from '#kernel/task/approval.ts'
import { canonicalJson, type JsonObject } from '#kernel/wire/json.ts'
import type { Calendar } from './recurrence/calendar-types.ts'
import { runsADay, shortDescriptionOf } from './recurrence/short-description.ts'
import type { Authority } from './run-task-store.ts'
import type { ScheduleView } from './schedule-schemas.ts'
import type { UserFacts } from './setup-checklist.ts'
import type { ScheduleRow } from './store.ts'
import { strategyText } from './strategy-text.ts'
import { calendarOf, compiledOf, configOf } from './views.ts'

/**
 * A standing approval is given once by a person for the orders of all runs of one version, because nobody is there
 * to approve when a run orders.
 */

export type ApprovedActivation = {
  schedule_id: string
  version: number
  /** The hash of the approved version; another edit of the schedule voids the approval. */
  version_sha256: string
  /** What one order may be worth; undefined if the person waives a run on paper alone. */
  max_usd?: string
  waive_paper?: true
  authority: JsonObject
}

const approvedDays = 90
export const approvedMs = approvedDays * 86_400_000

/**
 * Returns the maximum value of one order of a run, if it is above the value from which orders need an approval. Chats are
 * bounded by their limit, and strategies by what one run may spend; on paper nothing is spent.
 */
export function maxToApprove(
  { type, mode, compiled: stored }: Pick<ScheduleRow, 'type' | 'mode' | 'compiled'>,
  facts: UserFacts,
): string | undefined {
  const { approvalAboveUsd, chatPerDayUsd, perTransactionUsd } = facts
  const { isSpending, runMaxUsd } = compiledOf({ compiled: stored })
  if (!isSpending || approvalAboveUsd === null || mode === 'paper') return undefined
  const ownUsd = type === 'prompt' ? chatPerDayUsd : (runMaxUsd ?? perTransactionUsd)
  const maxUsd = compareDecimals(ownUsd, perTransactionUsd) < 0 ? ownUsd : perTransactionUsd
  return compareDecimals(maxUsd, approvalAboveUsd) > 0 ? maxUsd : undefined
}

type Approved = Pick<Authority, 'approvedMicros' | 'approvedUntil' | 'approvedTerms'>
type Version = Pick<
  ScheduleRow,
  | 'id'
  | 'version'
  | 'type'
  | 'query'
  | 'agent'
  | 'mode'
  | 'calendar'
  | 'config'
  | 'guards'
  | 'compiled'
  | 'budget_usd'
>

/**
 * Returns the approval that a person has given before, while it is valid. It counts only for the version and the access
 * that the person saw: the app or agent with its scopes, and its link to the person.
 */
export function approvedBefore(
  row: Version & Pick<ScheduleRow, 'authority'>,
  { access, now }: { access: object; now: Date },
): Approved {
  const { approvedMicros, approvedUntil, approvedTerms } = (row.authority ?? {}) as Approved
  const isValid = approvedUntil !== undefined && new Date(approvedUntil) > now
  return isValid && approvedMicros !== undefined && approvedTerms === termsHash(row, access)
    ? { approvedMicros, approvedUntil, approvedTerms }
    : {}
}

/**
 * Returns a hash of the version and the access that an approval is given for. The access is hashed without the approval
 * that it already contains.
 */
export function termsHash(row: Version, access: object): string {
  const {
    approvedMicros: _micros,
    approvedUntil: _until,
    approvedTerms: _terms,
    ...rest
  } = access as Partial<Authority>
  return sha256(canonicalJson({ version_sha256: versionHash(row), access: rest } as JsonObject))
}

export const covers = ({ approvedMicros }: Approved, maxUsd: string): boolean =>
  approvedMicros !== undefined && BigInt(approvedMicros) >= toMicros(maxUsd)

/**
 * Returns a hash of everything that a version does, and of the schedule it belongs to. The fields of a strategy are not
 * in the hash of a prompt, whose earlier approvals have none.
 */
export const versionHash = (row: Version): string => {
  const { id, version, type, query, agent, mode, calendar, config, guards, compiled, budget_usd } = row
  const common = { id, version, query, agent, calendar, guards, compiled }
  const own = type === 'prompt' ? {} : { type, mode, config, budget_usd }
  return sha256(canonicalJson({ ...common, ...own } as JsonObject))
}

type Requested = {
  row: ScheduleRow
  view: ScheduleView
  maxUsd: string | undefined
  authority: object
  waivesPaper: boolean
}

/** Says when and how often the runs come, each short enough to be shown whole. */
export function timesOf(calendar: Calendar | null, maxRuns: number | null): [name: string, value: string][] {
  if (!calendar) return []
  const inAll = maxRuns === null ? 'without a limit in all' : `at most ${maxRuns} in all`
  const runs = calendar.type === 'once' ? 'one' : `up to ${runsADay(calendar)} a day, ${inAll}`
  return [
    ['When', shortDescriptionOf(calendar)],
    ['Runs', runs],
  ]
}

/** Returns the request for a standing approval; its input has exactly the terms that the person sees. */
export function approvalRequest({ row, view, maxUsd, authority, waivesPaper }: Requested): ActRequest {
  const input: ApprovedActivation = {
    schedule_id: row.id,
    version: row.version,
    version_sha256: versionHash(row),
    ...(maxUsd !== undefined && { max_usd: maxUsd }),
    ...(waivesPaper && { waive_paper: true }),
    authority: authority as JsonObject,
  }
  const text =
    maxUsd === undefined
      ? 'Let a strategy trade that has not run on paper'
      : `Let the runs of a schedule start orders of up to ${maxUsd} USD each without asking`
  return {
    operation: 'schedules_activate',
    input,
    text,
    details: [
      approvalDetail('Schedule', row.title),
      row.type === 'prompt' ? approvalDetail('Each run asks', row.query) : whatItDoes(row),
      ...timesOf(calendarOf(row), row.max_runs).map(([name, value]) => approvalDetail(name, value)),
      approvalDetail('It may start', view.compiled.operations.join(', ')),
      ...(row.type === 'prompt' ? chatDetails(view) : strategyDetails(row, view)),
      ...(waivesPaper ? [approvalDetail('On paper', 'It has not run, and you waive that')] : []),
      approvalDetail('Ends', `after ${approvedDays} days, or with any change of the schedule`),
    ],
  }
}

const chatDetails = ({ compiled }: ScheduleView) => [
  approvalDetail('All chats of the account together', `up to ${compiled.per_day_max_usd} USD a day`),
]

/** The configuration, and not the words that its user has for it. */
const whatItDoes = (row: ScheduleRow) =>
  approvalDetail('What it does', strategyText(row.type as StrategyType, configOf(row) ?? {}))

/** Says what a strategy may trade and lose, from the fields that the hash of the version covers. */
const strategyDetails = (row: ScheduleRow, { compiled, guards }: ScheduleView) => [
  approvalDetail(
    'Its orders',
    `up to ${compiled.per_run_max_usd} USD a run, ${compiled.per_day_max_usd} USD a day`,
  ),
  approvalDetail('All its entries together', `up to ${row.budget_usd} USD`),
  approvalDetail('Guards', guardsText(guards)),
]

const guardsText = (guards: ScheduleView['guards']): string =>
  Object.entries(guards)
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
    .join(', ')
