import type { GuardsInput } from '#engines/strategy-terms/strategy-schemas.ts'
import type { StrategyFacts } from '#features/strategies/strategy-facts.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { fromUnits, toMicros, usdDecimals } from '#kernel/money/money.ts'
import type { Calendar } from './recurrence/calendar-types.ts'
import { runsADay } from './recurrence/short-description.ts'

/** What the runs of a strategy may spend at most. */

export type Spending = { runMaxUsd: string; dayMaxUsd: string }
type Spent = {
  facts: Pick<StrategyFacts, 'orderMaxUsd' | 'entriesPerDayMax'>
  guards: Pick<GuardsInput, 'max_trades_per_day'>
  calendar: Calendar | null
  /** What all entries may be worth together; without a budget, the money of the paper account. */
  wholeUsd: string
}

const smaller = (a: string, b: string): string => (compareDecimals(a, b) < 0 ? a : b)

export function spendingOf({ facts, guards, calendar, wholeUsd }: Spent): Spending {
  const runMaxUsd = smaller(facts.orderMaxUsd ?? wholeUsd, wholeUsd)
  const counts = [
    calendar ? runsADay(calendar) : 1,
    ...(facts.entriesPerDayMax === null ? [] : [facts.entriesPerDayMax]),
    ...(guards.max_trades_per_day === undefined ? [] : [guards.max_trades_per_day]),
  ]
  const dayMicros = toMicros(runMaxUsd) * BigInt(Math.min(...counts))
  return { runMaxUsd, dayMaxUsd: smaller(fromUnits(dayMicros, usdDecimals), wholeUsd) }
}
