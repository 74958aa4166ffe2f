import { type Intervals, reconciler } from '#engines/venue/reconciliation/reconciler.ts'
import { accountCounts } from '#engines/venue/records/account-store.ts'
import { counter, gauge, type Metric } from '#kernel/metrics.ts'
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
    isOnDuty: taskEngine.isOnDuty,
    isOnHold: () => taskEngine.holds.find(venueChainId) !== undefined,
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
  const metrics = async (): Promise<Metric[]> => {
    const { frozen } = await accountCounts(db)
    const { comparisons, faults, mismatches, skipped, subscribed } = made.counts()
    return [
      gauge('portico_venue_accounts_frozen', 'Venue accounts that are frozen, of all instances', frozen),
      gauge('portico_venue_accounts_streamed', 'Venue accounts with a stream subscription', subscribed),
      counter(
        'portico_venue_reconciliations_total',
        'Comparisons of a venue account with its record',
        comparisons,
      ),
      counter(
        'portico_venue_reconciliation_failures_total',
        'Comparisons that failed because the venue or the database did not answer',
        faults,
      ),
      counter(
        'portico_venue_account_freezes_total',
        'Venue accounts that this instance froze because record and venue disagree',
        mismatches,
      ),
      counter(
        'portico_venue_fills_skipped_total',
        'Fills skipped because their market is not listed',
        skipped,
      ),
    ]
  }
  return { ...made, metrics }
}
