import { accountCounts } from '#engines/venue/records/account-store.ts'
import { counter, gauge, type ReadMetrics } from '#kernel/metrics.ts'
import type { Queryable } from '#store/query.ts'
import type { Reconciler } from './reconciler.ts'

export const reconcilerMetrics =
  (db: Queryable, { counts }: Pick<Reconciler, 'counts'>): ReadMetrics =>
  async () => {
    const { frozen } = await accountCounts(db)
    const { comparisons, faults, mismatches, skipped, subscribed } = counts()
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
