import { createBacktests } from '#engines/backtests/backtests.ts'
import type { Files } from '#engines/files/files.ts'
import { pastDayEnds, pastSlots } from '#features/schedules/recurrence/past-times.ts'
import { createStrategies } from '#features/strategies/backtest.ts'
import { createLiveDriver } from '#features/strategies/live.ts'
import { createObserve } from '#features/strategies/market-reads.ts'
import { createPaperDriver } from '#features/strategies/paper.ts'
import { paperLevelsDeletion } from '#features/strategies/paper-levels.ts'
import { createStrategyReports } from '#features/strategies/reports.ts'
import { createStrategyRunner, type Drivers } from '#features/strategies/runner.ts'
import { createStartExit } from '#features/strategies/start-exit.ts'
import { createReadTerms } from '#features/strategies/terms.ts'
import { startWatch } from '#features/strategies/watch.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import type { openMarkets } from './markets.ts'
import type { Section } from './section.ts'
import type { Parts } from './section-parts.ts'
import { perpLimitsOf, venueChainId } from './settings.ts'

type StrategyParts = Pick<Parts, 'core' | 'scheduleClock' | 'venue' | 'custody' | 'innerCalls'> & {
  markets: ReturnType<typeof openMarkets>
  files: Files
  operations: () => readonly Operation[]
}

/** Opens backtests, and the parts that run strategies; without a venue there are no candles. */
export function openStrategies({
  core,
  scheduleClock: clock,
  venue,
  markets,
  files,
  ...parts
}: StrategyParts) {
  if (!venue || !markets) return undefined
  const { db, log, random, config, taskEngine } = core
  const { minOrderUsd } = perpLimitsOf(config)
  const { client } = venue
  const { candles, funding } = markets
  const backtests = createBacktests()
  const observe = createObserve({ candles, funding, venue: client })
  const readTerms = createReadTerms({ db, venue: client, minOrderUsd })
  const startExit = createStartExit({ taskEngine, clock, random })
  const dayEndOf = (timezone: string, atMs: number): number => pastDayEnds(timezone, atMs, atMs)[0]!
  const drivers: Drivers = {
    paper: createPaperDriver({ db, clock, observe, dayEnds: pastDayEnds }),
    live: createLiveDriver({
      db,
      clock: core.clock,
      scheduleClock: clock,
      funding: observe.funding,
      // The status of a stop between runs decides no order that was sent, so it takes nothing of what exits need.
      venue: { ...client.withUrgency('work'), order: client.withUrgency('admission').order },
      evmAddressOf: parts.custody.evmAddressOf,
      isTradingPaused: async (userId) => (await parts.custody.policy.summary(userId, venueChainId)).paused,
      streamedSinceMs: venue.streams.subscribedSinceMs,
      calls: parts.innerCalls,
      operations: parts.operations,
      dayEndOf,
    }),
  }
  const watch = () =>
    startWatch({
      db,
      clock,
      log,
      readTerms,
      drivers,
      startExit,
      dayEndOf,
      transact: taskEngine.transact,
      isOnDuty: taskEngine.isOnDuty,
      appendEvents: (tx, userId, events) => taskEngine.appendEvents(tx, userId, events, core.clock.now()),
      onCommitted(userId) {
        taskEngine.announceQueued()
        taskEngine.events.notify(userId)
      },
    })
  const section: Section = {
    part: 'perp',
    operations: createStrategies({
      venue: client,
      candles,
      funding,
      files,
      backtests,
      clock,
      minOrderUsd,
      dayEnds: pastDayEnds,
      slotsOf: pastSlots,
    }),
    starters: [watch],
    deletions: [paperLevelsDeletion],
  }
  const reports = createStrategyReports({
    db,
    clock,
    log,
    files,
    candles,
    funding,
    backtests,
    dayEnds: pastDayEnds,
  })
  return {
    section,
    startExit,
    candles,
    watch,
    runner: createStrategyRunner({ db, clock, random, readTerms, observe, drivers, reports }),
  }
}
