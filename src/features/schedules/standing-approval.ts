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
import type { Compiled, UserFacts } from './setup-checklist.ts'
import type { ScheduleRow } from './store.ts'
import { calendarOf } from './views.ts'

/**
 * A standing approval is given once by a person for the orders of all runs of one version, because nobody is there
 * to approve when a run orders.
 */

export type ApprovedActivation = {
  schedule_id: string
  version: number
  /** The hash of the approved version; another edit of the schedule voids the approval. */
  version_sha256: string
  max_usd: string
  authority: JsonObject
}

const approvedDays = 90
export const approvedMs = approvedDays * 86_400_000

/** Returns the maximum value of one order of a run, if it is above the value from which orders need an approval. */
export function maxToApprove({ isSpending }: Compiled, facts: UserFacts): string | undefined {
  const { approvalAboveUsd, chatPerDayUsd, perTransactionUsd } = facts
  if (!isSpending || approvalAboveUsd === null) return undefined
  const maxUsd = compareDecimals(chatPerDayUsd, perTransactionUsd) < 0 ? chatPerDayUsd : perTransactionUsd
  return compareDecimals(maxUsd, approvalAboveUsd) > 0 ? maxUsd : undefined
}

type Approved = Pick<Authority, 'approvedMicros' | 'approvedUntil' | 'approvedTerms'>
type Version = Pick<ScheduleRow, 'id' | 'version' | 'query' | 'agent' | 'calendar' | 'guards' | 'compiled'>

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

/** Returns a hash of everything that a version does, and of the schedule it belongs to. */
export const versionHash = ({ id, version, query, agent, calendar, guards, compiled }: Version): string =>
  sha256(canonicalJson({ id, version, query, agent, calendar, guards, compiled } as JsonObject))

type Requested = { row: ScheduleRow; view: ScheduleView; maxUsd: string; authority: object }

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
export function approvalRequest({ row, view, maxUsd, authority }: Requested): ActRequest {
  const input: ApprovedActivation = {
    schedule_id: row.id,
    version: row.version,
    version_sha256: versionHash(row),
    max_usd: maxUsd,
    authority: authority as JsonObject,
  }
  return {
    operation: 'schedules_activate',
    input,
    text: `Let the runs of a schedule start orders of up to ${maxUsd} USD each without asking`,
    details: [
      approvalDetail('Schedule', row.title),
      approvalDetail('Each run asks', row.query),
      ...timesOf(calendarOf(row), row.max_runs).map(([name, value]) => approvalDetail(name, value)),
      approvalDetail('It may start', view.compiled.operations.join(', ')),
      approvalDetail('All chats of the account together', `up to ${view.compiled.per_day_max_usd} USD a day`),
      approvalDetail('Ends', `after ${approvedDays} days, or with any change of the schedule`),
    ],
  }
}
