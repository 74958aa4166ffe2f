import type { EventLog } from '#durable/events/event-log.ts'
import type { Transact } from '#durable/transactions.ts'
import * as store from '#engines/venue/records/account-store.ts'
import { isPosition } from '#engines/venue/records/expected-balances.ts'
import * as record from '#engines/venue/records/record-store.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { ComparisonResult, Mismatch } from './compare-account.ts'

/** Applies the result of a comparison to an account: it is reconciled, has a pending mismatch, or is frozen. */

export type ApplyDeps = {
  db: Queryable
  transact: Transact
  events: Pick<EventLog, 'add' | 'notify'>
  freeze: (tx: Tx, userId: string, reason: string) => Promise<void>
  unfreeze: (tx: Tx, userId: string) => Promise<void>
  /** Whether a difference in cash or tokens alone freezes the account; if not, the difference is only logged. */
  balancesFreeze: boolean
  clock: Clock
  log: Log
  settleMs: number
  /** Returns when an account without a mismatch is compared next. */
  nextAfter: (account: store.VenueAccount, now: Date) => Date
  onFrozen: () => void
}

const flagged = ({ account }: store.VenueAccount, data: Record<string, string | null>) => ({
  type: 'security.flagged',
  subject: { kind: 'account', id: account },
  data,
})

export async function freezeAccount(
  deps: ApplyDeps,
  account: store.VenueAccount,
  { code, reason }: Mismatch,
) {
  const { transact, events, clock, log } = deps
  const now = clock.now()
  const isNew = await transact(async (tx) => {
    const [first] = await store.markFrozen(tx, account, reason, now)
    if (!first) return false
    await deps.freeze(tx, account.user_id, reason)
    const data = { venue: account.venue, state: 'frozen', code, reason, since: now.toISOString() }
    await events.add(tx, account.user_id, [flagged(account, data)])
    return true
  })
  if (!isNew) return
  deps.onFrozen()
  events.notify(account.user_id)
  log.error({ userId: account.user_id, code, reason }, 'venue account frozen: reconciliation mismatch')
}

/** Records the balances that an account held before its record began as opening balances. */
async function addOpeningBalances(
  { transact, log }: ApplyDeps,
  account: store.VenueAccount,
  { found, atMs }: Extract<ComparisonResult, { type: 'mismatch' }>,
): Promise<boolean> {
  if (found.length === 0) return false
  const reason = 'held before the record began'
  await transact((tx) => record.addAdjustments(tx, account, found, { kind: 'opening', reason, atMs }))
  log.warn({ userId: account.user_id, found }, 'opening balances of a venue account recorded')
  return true
}

/** Records a difference caused by ledger entries that do not say which balance they changed. */
async function addAdjustments(
  { db, transact, log }: ApplyDeps,
  account: store.VenueAccount,
  { found, atMs }: Extract<ComparisonResult, { type: 'mismatch' }>,
): Promise<boolean> {
  if (found.length === 0 || found.some(isPosition)) return false
  const kinds = await record.unexplainedSince(db, account)
  if (kinds.length === 0) return false
  const reason = kinds.join(', ')
  await transact((tx) => record.addAdjustments(tx, account, found, { kind: 'adjustment', reason, atMs }))
  log.warn(
    { userId: account.user_id, reason, found },
    'venue balance adjusted: ledger entry of unknown effect',
  )
  return true
}

/**
 * Removes the freeze of an account from the user's policy, in the commit that makes the account active again. If this
 * commit did not remove it, nothing else would.
 */
export const unfreezeAccount =
  ({ events, unfreeze }: Pick<ApplyDeps, 'events' | 'unfreeze'>) =>
  async (tx: Tx, account: store.VenueAccount): Promise<void> => {
    const { user_id: userId, unfrozen_by: by, venue } = account
    await unfreeze(tx, userId)
    await events.add(tx, userId, [flagged(account, { venue, state: 'unfrozen', unfrozen_by: by })])
  }

function announceUnfrozen(
  { events, log }: ApplyDeps,
  { user_id: userId, unfrozen_by: by }: store.VenueAccount,
) {
  events.notify(userId)
  log.warn({ userId, by }, 'venue account unfrozen')
}

export async function applyResult(
  deps: ApplyDeps,
  account: store.VenueAccount,
  result: ComparisonResult,
): Promise<void> {
  const { db, clock, log, settleMs } = deps
  const now = clock.now()
  const soon = later(now, settleMs)
  const reconciledThroughMs = account.reconciled_through_ms
  const times = { now, nextAt: deps.nextAfter(account, now), tradedAt: soon }
  const idle = { mismatch: null, mismatchSince: null, ...times }
  if (result.type === 'indeterminate') {
    await store.recheckAt(db, account, soon)
    return
  }
  if (result.type === 'matched') {
    if (account.state === 'unfreezing') announceUnfrozen(deps, account)
    if (account.state === 'new') await store.activate(db, account)
    await store.recordComparison(db, account, { ...idle, reconciledThroughMs: result.atMs })
    return
  }
  if (result.type === 'foreign') {
    await freezeAccount(deps, account, result.mismatch)
    await store.recordComparison(db, account, { ...idle, reconciledThroughMs })
    return
  }
  const { reason, code } = result.mismatch
  const mismatchSince = account.mismatch === reason ? (account.mismatch_since ?? now) : now
  const pending = { mismatch: reason, mismatchSince, reconciledThroughMs, ...times }
  const persists = now.getTime() - mismatchSince.getTime() >= settleMs
  const explain = account.state === 'new' ? addOpeningBalances : addAdjustments
  if (!persists || (await explain(deps, account, result))) {
    await store.recordComparison(db, account, { ...pending, nextAt: soon })
    return
  }
  if (code !== 'balance' || deps.balancesFreeze) await freezeAccount(deps, account, result.mismatch)
  else log.error({ userId: account.user_id, reason }, 'venue balances differ from the record')
  await store.recordComparison(db, account, pending)
}
