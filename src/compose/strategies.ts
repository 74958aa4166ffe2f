import { createBacktests } from '#engines/backtests/backtests.ts'
import type { CandleStore } from '#engines/candles/candle-store.ts'
import type { Files } from '#engines/files/files.ts'
import { pastDayEnds, pastSlots } from '#features/schedules/recurrence/past-times.ts'
import { createStrategies } from '#features/strategies/backtest.ts'
import type { Section } from './section.ts'
import type { Parts } from './section-parts.ts'
import { perpLimitsOf } from './settings.ts'

type StrategyParts = Pick<Parts, 'core' | 'scheduleClock' | 'venue'> & {
  candles: CandleStore | undefined
  files: Files
}

/** Opens backtests; without a venue there are no candles. */
export function openStrategies({ core, scheduleClock, venue, candles, files }: StrategyParts): Section {
  if (!venue || !candles) return {}
  return {
    part: 'perp',
    operations: createStrategies({
      venue: venue.client,
      candles,
      files,
      backtests: createBacktests(),
      clock: scheduleClock,
      minOrderUsd: perpLimitsOf(core.config).minOrderUsd,
      dayEnds: pastDayEnds,
      slotsOf: pastSlots,
    }),
  }
}
