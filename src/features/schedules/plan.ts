import type { GuardsInput, StrategyFields } from '#engines/strategy-terms/strategy-schemas.ts'
import { exactlyOneOf, invalid } from '#kernel/contract/fault.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'
import type { StrategyMode, StrategyType } from '#store/tables/strategies.ts'
import type { ScheduleInputOf } from './contract.ts'
import type { Calendar, Refusal } from './recurrence/calendar-types.ts'
import type { ReadOptions } from './recurrence/read-schedule.ts'
import { intervalSecondsMin } from './schedule-schemas.ts'

/** This module has what the readers of an input share: the plan that they make, and the options of its times. */

/** The content of a version of a schedule, what its runs do and its times, as read from an input. */
export type Plan = {
  type: StrategyType
  query: string
  agent: Agent
  mode: StrategyMode
  calendar: Calendar | null
  /** The configuration of a strategy; null for a prompt. */
  config: StrategyFields | null
  budgetUsd: string | null
  paperBalanceUsd: string
  maxRuns: number | null
  guards: GuardsInput
  onMissed: 'run_latest' | 'skip'
  catchUpSeconds: number
  /** Notes about words that were read in another sense, such as `EST` as America/New_York. */
  notes: string[]
}
export type PlanInput = Omit<ScheduleInputOf<'create'>, 'status'>
export const refused = ({ field, type, msg, ctx }: Refusal) => invalid(field, type, msg, { ...ctx })

type BoundsInput = {
  timezone?: string | undefined
  starts_at?: string | null | undefined
  ends_at?: string | null | undefined
}
export const optionsOf = (
  { timezone, starts_at, ends_at }: BoundsInput,
  { now, secondsMin = intervalSecondsMin }: { now: Date; secondsMin?: number },
): ReadOptions => ({
  now,
  secondsMin,
  ...(timezone !== undefined && { timezone }),
  ...(starts_at && { startsAt: starts_at }),
  ...(ends_at && { endsAt: ends_at }),
})

export function queryIn({ query, prompt }: Pick<PlanInput, 'query' | 'prompt'>): string | undefined {
  if (query !== undefined && prompt !== undefined) throw exactlyOneOf('query', 'prompt', { hasBoth: true })
  return (query ?? prompt)?.trim()
}
