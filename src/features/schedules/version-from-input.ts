import { exactlyOneOf, invalid } from '#kernel/contract/fault.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'
import { hasLossGuard, lossGuards } from './loss-guards.ts'
import { optionsOf, type Plan, type PlanInput, queryIn, refused } from './plan.ts'
import { type Calendar, isElapsed } from './recurrence/calendar-types.ts'
import { readSchedule } from './recurrence/read-schedule.ts'
import {
  catchUpSecondsDefault,
  intervalSecondsMin,
  paperBalanceDefault,
  strategySecondsMin,
} from './schedule-schemas.ts'
import { type ReadCalendar, splitSentence } from './split-sentence.ts'
import { closesCalendar } from './strategy-calendar.ts'
import type { StrategyTerms } from './strategy-terms.ts'

/** The moment of the input, and the terms of the strategy that it names; without terms it is a prompt. */
export type Reading = { now: Date; terms?: StrategyTerms | undefined }

const defaultAgent: Agent = 'ProAgent'

const commonOf = (input: PlanInput) => ({
  agent: input.agent ?? defaultAgent,
  maxRuns: input.max_runs ?? null,
  onMissed: input.on_missed ?? ('run_latest' as const),
  catchUpSeconds: input.catch_up_seconds ?? catchUpSecondsDefault,
})

/** Returns the plan of a new schedule; if `type` is `prompt`, a query without times becomes a draft. */
export const newPlan = (input: PlanInput, { now, terms }: Reading): Plan =>
  terms ? newStrategy(input, { now, terms }) : newPrompt(input, now)

function newPrompt(input: PlanInput, now: Date): Plan {
  assertPromptFields(input)
  const query = queryIn(input)
  if (query === undefined) throw exactlyOneOf('query', 'prompt', { hasBoth: false })
  const options = optionsOf(input, { now })
  const common = {
    ...commonOf(input),
    type: 'prompt' as const,
    mode: 'live' as const,
    config: null,
    budgetUsd: null,
    paperBalanceUsd: paperBalanceDefault,
    guards: input.guards ?? {},
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

function newStrategy(input: PlanInput, { now, terms }: Required<Reading> & { terms: StrategyTerms }): Plan {
  assertStrategyFields(input, terms.type)
  const { type, facts, words } = terms
  const read = strategyCalendar(null, input, { now, terms })
  if (!read)
    throw invalid(
      'schedule',
      'missing',
      `Field required: a strategy of the type ${type} acts at the times of \`schedule\``,
    )
  return {
    ...commonOf(input),
    type,
    query: queryOf(input, terms),
    mode: input.mode ?? 'paper',
    ...read,
    config: facts.fields,
    budgetUsd: (input.budget_usd === undefined ? words?.budgetUsd : input.budget_usd) ?? null,
    paperBalanceUsd: input.paper_balance_usd ?? paperBalanceDefault,
    guards: { ...words?.guards, ...input.guards },
  }
}

const queryOf = (input: PlanInput, { words, text }: StrategyTerms): string =>
  words?.query ?? queryIn(input) ?? text

/** Returns the times of a strategy: those of the closes that it decides on, or those that its input says. */
function strategyCalendar(
  stored: Calendar | null,
  input: PlanInput,
  { now, terms }: { now: Date; terms: StrategyTerms },
): ReadCalendar | undefined {
  const { facts, words, type } = terms
  if (facts.spanSeconds !== null) {
    if (input.schedule !== undefined)
      throw invalid(
        'schedule',
        'extra_forbidden',
        `A strategy of the type ${type} acts on the closes of its candles and takes no \`schedule\``,
      )
    return closesCalendar(stored, input, { now, spanSeconds: facts.spanSeconds })
  }
  if (input.schedule === undefined && words?.times) return words.times
  return changedCalendar(stored, input, { now, secondsMin: strategySecondsMin })
}

/** Returns the stored calendar with another zone or other bounds; null in the input removes a bound. */
function changedCalendar(
  stored: Calendar | null,
  input: PlanInput,
  { now, secondsMin }: { now: Date; secondsMin: number },
): ReadCalendar | undefined {
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
  const reading = readSchedule(schedule ?? (rest as Calendar), optionsOf(bounds, { now, secondsMin }))
  if ('refusal' in reading) throw refused(reading.refusal)
  return reading
}

/** Returns the plan after an edit; fields that the input leaves out keep their stored values. */
export function changedPlan(stored: Plan, input: PlanInput, { now, terms }: Reading): Plan {
  if (input.type !== undefined && input.type !== stored.type)
    throw invalid(
      'type',
      'value_error',
      `Value error: a schedule keeps its type, which is ${stored.type}; make another one`,
    )
  const common = {
    ...stored,
    agent: input.agent ?? stored.agent,
    maxRuns: input.max_runs === undefined ? stored.maxRuns : input.max_runs,
    onMissed: input.on_missed ?? stored.onMissed,
    catchUpSeconds: input.catch_up_seconds ?? stored.catchUpSeconds,
  }
  if (terms) return changedStrategy(common, input, { now, terms })
  assertPromptFields({ ...input, type: 'prompt' })
  return {
    ...common,
    query: queryIn(input) ?? stored.query,
    ...changedCalendar(stored.calendar, input, { now, secondsMin: intervalSecondsMin }),
    guards: input.guards ?? stored.guards,
  }
}

function changedStrategy(
  stored: Plan,
  input: PlanInput,
  { now, terms }: { now: Date; terms: StrategyTerms },
): Plan {
  assertStrategyFields(input, terms.type)
  const { facts, words } = terms
  const hasOtherText = words !== undefined || queryIn(input) !== undefined || input.config !== undefined
  const plan: Plan = {
    ...stored,
    ...(hasOtherText && { query: queryOf(input, terms) }),
    ...strategyCalendar(stored.calendar, input, { now, terms }),
    mode: input.mode ?? stored.mode,
    config: facts.fields,
    budgetUsd: input.budget_usd === undefined ? (words?.budgetUsd ?? stored.budgetUsd) : input.budget_usd,
    paperBalanceUsd: input.paper_balance_usd ?? stored.paperBalanceUsd,
    guards: input.guards ?? (words && hasFields(words.guards) ? words.guards : stored.guards),
  }
  assertStaysGuarded(stored, plan)
  return plan
}

const hasFields = (value: object): boolean => Object.keys(value).length > 0

/** A live strategy keeps a loss guard and a budget; one that has returned to paper needs neither. */
function assertStaysGuarded(before: Plan, after: Plan): void {
  if (before.mode !== 'live' || after.mode !== 'live') return
  if (hasLossGuard(before.guards) && !hasLossGuard(after.guards))
    throw invalid(
      'guards',
      'value_error',
      `Value error: a live strategy keeps at least one of ${lossGuards.map((name) => `\`${name}\``).join(', ')}`,
    )
  if (before.budgetUsd !== null && after.budgetUsd === null)
    throw invalid('budget_usd', 'value_error', 'Value error: a live strategy keeps a budget')
}

const strategyOnly = ['config', 'budget_usd', 'paper_balance_usd'] as const

function assertPromptFields(input: PlanInput): void {
  const field = strategyOnly.find((name) => input[name] !== undefined && input[name] !== null)
  if (field === 'config' && input.type === undefined)
    throw invalid('type', 'missing', 'Field required: `config` needs the `type` of the strategy')
  if (field !== undefined)
    throw invalid(field, 'extra_forbidden', `A schedule of the type prompt takes no \`${field}\``)
  if (input.mode === 'paper')
    throw invalid(
      'mode',
      'value_error',
      'Value error: a schedule of the type prompt is `live`; strategies run on paper',
    )
  const guard = Object.entries(input.guards ?? {}).find(
    ([name, value]) => value !== undefined && name !== 'cooldown_seconds',
  )
  if (guard)
    throw invalid(
      `guards.${guard[0]}`,
      'extra_forbidden',
      `A schedule of the type prompt takes no \`${guard[0]}\`: the limits of the policy bound its runs`,
    )
}

const promptOnly = ['agent', 'thread_id'] as const

function assertStrategyFields(input: PlanInput, type: string): void {
  const field = promptOnly.find((name) => input[name] !== undefined && input[name] !== null)
  if (field !== undefined)
    throw invalid(
      field,
      'extra_forbidden',
      `A strategy of the type ${type} asks no chat, so it takes no \`${field}\``,
    )
}
