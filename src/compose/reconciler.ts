import { dayMs } from '#durable/upkeep/retention.ts'
import { reconcilerMetrics } from '#engines/venue/reconciliation/metrics.ts'
import { createReconciler, type Intervals } from '#engines/venue/reconciliation/reconciler.ts'
import { venueRetentionJob } from '#engines/venue/records/retention.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import type { Section } from './section.ts'
import { venueChainId } from './settings.ts'
import type { Venue } from './venue.ts'

type ReconcilerDeps = {
  core: Core
  venue: Pick<Venue, 'client' | 'streams'>
  custody: Pick<Custody, 'policy'>
}
export type ReconcilerOverrides = {
  /** How often the venue accounts are compared. */
  intervals?: Intervals
}

/** Compares the venue accounts with the gateway's record of them. */
export function openReconciler(
  { core, venue, custody: { policy } }: ReconcilerDeps,
  { intervals }: ReconcilerOverrides = {},
) {
  const { config, db, taskEngine, clock, random, log } = core
  const made = createReconciler({
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
  return { ...made, starters: [made.start], metrics: { venue_accounts: reconcilerMetrics(db, made) } }
}

/** Records of the venue are deleted by age even where the venue is no longer served, because earlier records remain. */
export const venueRecords = ({ config, db, clock }: Core): Section => {
  const days = config.VENUE_RECORD_RETENTION_DAYS
  return { jobs: days ? [venueRetentionJob(db, clock, days * dayMs)] : [] }
}
