import { createBacktests } from '#engines/backtests/backtests.ts'
import type { Files } from '#engines/files/files.ts'
import { pastDayEnds, pastSlots } from '#features/schedules/recurrence/past-times.ts'
import { createStrategies } from '#features/strategies/backtest.ts'
import type { openMarkets } from './markets.ts'
import type { Section } from './section.ts'
import type { Parts } from './section-parts.ts'
import { perpLimitsOf } from './settings.ts'

type StrategyParts = Pick<Parts, 'core' | 'scheduleClock' | 'venue'> & {
  markets: ReturnType<typeof openMarkets>
  files: Files
}

/** Opens backtests; without a venue there are no candles. */
export function openStrategies({ core, scheduleClock, venue, markets, files }: StrategyParts): Section {
  if (!venue || !markets) return {}
  return {
    part: 'perp',
    operations: createStrategies({
      venue: venue.client,
      candles: markets.candles,
      funding: markets.funding,
      files,
      backtests: createBacktests(),
      clock: scheduleClock,
      minOrderUsd: perpLimitsOf(core.config).minOrderUsd,
      dayEnds: pastDayEnds,
      slotsOf: pastSlots,
    }),
  }
}
