import { type Intervals, reconciler } from '#engines/venue/reconciliation/reconciler.ts'
import { accountCounts } from '#engines/venue/records/account-store.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import { venueChainId } from './settings.ts'
import type { Venue } from './venue.ts'

type ReconcilerDeps = {
  core: Core
  venue: Pick<Venue, 'client' | 'streams'>
  custody: Pick<Custody, 'policy'>
}
export type ReconcilerOverrides = {
  /** How often accounts are compared. */
  intervals?: Intervals
}

/** Compares the venue accounts with the gateway's record of them. */
export function openReconciler(
  { core, venue, custody: { policy } }: ReconcilerDeps,
  { intervals }: ReconcilerOverrides = {},
) {
  const { config, db, taskEngine, clock, random, log } = core
  const made = reconciler({
    db,
    transact: taskEngine.transact,
    events: taskEngine.events,
    instanceId: taskEngine.instanceId,
    venue: venue.client.withUrgency('background'),
    streams: venue.streams,
    clock,
    random,
    log,
    freeze: (tx, userId, reason) => policy.freeze(tx, { userId, chainId: venueChainId }, reason),
    unfreeze: (tx, userId) => policy.unfreeze(tx, { userId, chainId: venueChainId }),
    balancesFreeze: config.HYPERLIQUID_BALANCE_DRIFT === 'freeze',
    ...(intervals && { intervals }),
  })
  const gauges = async () => {
    const { frozen } = await accountCounts(db)
    const { comparisons, faults, mismatches, skipped, subscribed } = made.counts()
    return [
      {
        name: 'venue_accounts_frozen',
        help: 'Accounts that are frozen because record and venue disagree',
        value: frozen,
      },
      { name: 'venue_accounts_followed', help: 'Accounts with a stream subscription', value: subscribed },
      { name: 'venue_looks', help: 'Comparisons of accounts since the start', value: comparisons },
      {
        name: 'venue_looks_failed',
        help: 'Comparisons that the venue or the database did not answer',
        value: faults,
      },
      {
        name: 'venue_fills_skipped',
        help: 'Fills of markets that are not listed, skipped since the start',
        value: skipped,
      },
      { name: 'venue_drifts', help: 'Accounts that this instance froze since the start', value: mismatches },
    ]
  }
  return { ...made, gauges }
}
