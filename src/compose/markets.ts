import { createCandleStore } from '#engines/candles/candle-store.ts'
import { createFundingStore } from '#engines/candles/funding-store.ts'
import { createMarkets } from '#features/markets/markets.ts'
import type { Section } from './section.ts'
import type { Parts } from './section-parts.ts'
import { venueWeightOf } from './settings.ts'

/** The share of the venue's weight that filling candles may take, in percent. */
const fillShare = 20

/** Opens the history of markets; undefined where no venue is configured. */
export function openMarkets({ core, scheduleClock, venue }: Pick<Parts, 'core' | 'scheduleClock' | 'venue'>) {
  if (!venue) return undefined
  const { db, log, config, taskEngine } = core
  const candles = createCandleStore({
    db,
    log,
    clock: scheduleClock,
    venue: venue.client,
    weightPerMinute: Math.floor((venueWeightOf(config) * fillShare) / 100),
    isOnDuty: taskEngine.isOnDuty,
  })
  const section: Section = {
    part: 'perp',
    operations: createMarkets({ venue: venue.client, candles }),
    jobs: candles.jobs,
    starters: [() => candles.start()],
  }
  return { section, candles, funding: createFundingStore({ db, venue: venue.client }) }
}
