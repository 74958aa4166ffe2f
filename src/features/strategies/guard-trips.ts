import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import type { GuardState, GuardTrip } from '#market/strategies/guards.ts'
import { equityOf, type StrategyRun } from '#market/strategies/strategy-run.ts'
import { query } from '#store/query.ts'
import { guardTrippedEvent } from './guard-event.ts'
import type { StrategyTerms } from './mode-driver.ts'

/** Returns the guards that have tripped between two states of an account. */
export function tripsBetween(before: GuardState, { tripped, trippedToday }: GuardState): GuardTrip[] {
  const isNew = (trip: GuardTrip | null, earlier: GuardTrip | null): trip is GuardTrip =>
    trip !== null && (trip.guard !== earlier?.guard || trip.atMs !== earlier.atMs)
  return [
    ...(isNew(tripped, before.tripped) ? [tripped] : []),
    ...(isNew(trippedToday, before.trippedToday) ? [trippedToday] : []),
  ]
}

type Change = { before: StrategyRun; after: StrategyRun; terms: StrategyTerms }

/** Returns an event of each guard that a change of an account has tripped. */
export async function tripEvents(tx: Tx, { before, after, terms }: Change): Promise<NewEvent[]> {
  const trips = tripsBetween(before.guards, after.guards)
  if (trips.length === 0) return []
  const { strategyId, mode, config } = terms
  const [row] = await query<{ title: string }>(tx, 'select title from strategy where id = $1', [strategyId])
  return trips.map(({ guard, atMs }) =>
    guardTrippedEvent({
      strategyId,
      title: row?.title ?? '',
      mode,
      guard,
      atMs,
      onTrip: config.guards.on_trip,
      equityUsd: fromUnits(equityOf(after, config), usdDecimals),
    }),
  )
}
