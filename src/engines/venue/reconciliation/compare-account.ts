import type { Transact } from '#durable/transactions.ts'
import { disableBalanceChecks, findAccount, type VenueAccount } from '#engines/venue/records/account-store.ts'
import {
  compareBalances,
  type Difference,
  describeDifferences,
  isPosition,
  observedBalances,
  positionBalanceKey,
  spotBalanceKey,
} from '#engines/venue/records/expected-balances.ts'
import type { Facts, Ingest } from '#engines/venue/records/ingest.ts'
import { readAllPages } from '#engines/venue/records/read-all-pages.ts'
import * as record from '#engines/venue/records/record-store.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { rollBaseline } from './roll-baseline.ts'

/** Compares an account's balances at the venue with the sum of its records; reads lists only for a difference. */

export type Mismatch = {
  code: 'foreign_fill' | 'foreign_transfer' | 'position' | 'balance' | 'order_outcome'
  reason: string
}
export type ComparisonResult =
  | { type: 'matched'; atMs: number }
  | { type: 'mismatch'; found: Difference[]; atMs: number; mismatch: Mismatch }
  | { type: 'foreign'; mismatch: Mismatch }
  /** A record has the timestamp of the balances, so whether they include it is unknown. */
  | { type: 'indeterminate' }

type AccountComparerDeps = {
  db: Queryable
  transact: Transact
  venue: Pick<
    Hyperliquid,
    'account' | 'spotHoldings' | 'fillsSince' | 'fundingSince' | 'ledgerSince' | 'accountMode'
  >
  ingest: Ingest
  /** Called in the commit that makes an account active again after a freeze. */
  onUnfrozen: (tx: Tx, account: VenueAccount) => Promise<void>
}

/** The venue may add records with an earlier timestamp up to this long afterwards. */
const overlapMs = 5_000
const outcomeWindowMs = 24 * 3_600_000
const separateModes = ['default', 'disabled']

type Comparing = Pick<VenueAccount, 'account' | 'checks_balances'>

export const createAccountComparer = (deps: AccountComparerDeps) => ({
  /** Compares an account; `thorough` reads its fills even without a difference, as after a gap in the stream. */
  compare: (account: VenueAccount, { thorough = false } = {}): Promise<ComparisonResult> =>
    account.state === 'unfreezing' ? rebaseline(deps, account) : compare(deps, account, { thorough }),

  /** Imports the fills of a frozen account without comparing it. */
  async importFills(account: VenueAccount): Promise<void> {
    const lastMs = Math.max(await record.lastFillMs(deps.db, account), Number(account.reconciled_through_ms))
    await deps.ingest(account, await readFills(deps, account.account, Math.max(lastMs - overlapMs, 0)))
  },
})

async function readBalances(
  { venue }: AccountComparerDeps,
  { account, checks_balances: checksBalances }: Comparing,
) {
  const [state, spot] = await Promise.all([
    venue.account(account),
    checksBalances ? venue.spotHoldings(account) : Promise.resolve({ balances: [], unread: [] }),
  ])
  const unread = [
    ...state.unread.map((symbol) => symbol && positionBalanceKey(symbol)),
    ...spot.unread.map((token) => token && spotBalanceKey(token)),
  ]
  if (unread.includes(null))
    throw new Fault(
      'unavailable',
      'Hyperliquid shows a position or a balance in an unknown format and without a name',
    )
  return {
    atMs: state.timeMs,
    observed: observedBalances(state, spot.balances, { balances: checksBalances }),
    unread,
  }
}

type Read = (deps: AccountComparerDeps, account: string, sinceMs: number) => Promise<Facts>

const readFills: Read = async ({ venue }, account, sinceMs) => ({
  fills: await readAllPages((from) => venue.fillsSince(account, from), sinceMs, 'fills'),
})
const readChanges: Read = async ({ venue }, account, sinceMs) => ({
  fundings: await readAllPages((from) => venue.fundingSince(account, from), sinceMs, 'fundings'),
  updates: await readAllPages((from) => venue.ledgerSince(account, from), sinceMs, 'updates'),
})

/** Starts a new baseline for an account being unfrozen; differences until then are recorded as adjustments. */
async function rebaseline(deps: AccountComparerDeps, account: VenueAccount): Promise<ComparisonResult> {
  const { transact, venue, ingest, onUnfrozen } = deps
  const sinceMs = Math.max(Number(account.reconciled_through_ms) - overlapMs, 0)
  for (const read of [readFills, readChanges])
    await ingest(account, await read(deps, account.account, sinceMs))
  const checksBalances = separateModes.includes(await venue.accountMode(account.account))
  const seen = await readBalances(deps, { ...account, checks_balances: checksBalances })
  const { fills = [] } = await readFills(deps, account.account, seen.atMs)
  const { fundings = [], updates = [] } = await readChanges(deps, account.account, seen.atMs)
  if ([...fills, ...fundings, ...updates].some(({ atMs }) => atMs === seen.atMs))
    return { type: 'indeterminate' }
  const isUnfrozen = await transact(async (tx) => {
    const current = await findAccount(tx, account.user_id, { lock: true })
    // The account was frozen again while its balances were read.
    if (current?.state !== 'unfreezing') return false
    const { expected, entries } = await record.expectedAt(tx, current, seen.atMs)
    const reason = `unfrozen by ${current.unfrozen_by ?? 'nobody'}: ${current.reason ?? ''}`
    const found = compareBalances(expected, seen.observed, entries)
    await record.addAdjustments(tx, account, found, { kind: 'unfreeze', reason, atMs: seen.atMs })
    await record.addUnfrozen(tx, account, { reason, atMs: seen.atMs })
    await record.setBaseline(tx, current, seen.observed, { atMs: seen.atMs, checksBalances })
    await onUnfrozen(tx, current)
    return true
  })
  return isUnfrozen ? { type: 'matched', atMs: seen.atMs } : { type: 'indeterminate' }
}

async function checkOutcomes(db: Queryable, account: VenueAccount, atMs: number): Promise<ComparisonResult> {
  const [wrong] = await record.outcomeMismatches(db, account, atMs - outcomeWindowMs)
  if (!wrong) return { type: 'matched', atMs }
  const reason = `task ${wrong.task_id} reports ${wrong.said}, but ${wrong.filled} was filled`
  return { type: 'mismatch', found: [], atMs, mismatch: { code: 'order_outcome', reason } }
}

/** Finds differences to the record: `found` has those beyond the venue's rounding, `rounding` those within it. */
async function findDifferences(
  db: Queryable,
  account: VenueAccount,
  seen: Awaited<ReturnType<typeof readBalances>>,
) {
  const { expected, entries } = await record.expectedAt(db, account, seen.atMs)
  // Balances that the venue shows in an unknown format are skipped.
  const readable = ({ balanceKey }: Difference) => !seen.unread.includes(balanceKey)
  const found = compareBalances(expected, seen.observed, entries).filter(readable)
  return { found, entries, rounding: compareBalances(expected, seen.observed, 0).filter(readable) }
}

/**
 * Returns the differences that count. If perp and spot share one balance, only positions are comparable, so differences
 * of balances are left out.
 */
async function onlyComparable(
  { db, venue }: AccountComparerDeps,
  account: VenueAccount,
  found: readonly Difference[],
): Promise<Difference[]> {
  if (!account.checks_balances || found.every(isPosition)) return [...found]
  if (separateModes.includes(await venue.accountMode(account.account))) return [...found]
  await disableBalanceChecks(db, account)
  return found.filter(isPosition)
}

async function compare(
  deps: AccountComparerDeps,
  account: VenueAccount,
  { thorough }: { thorough: boolean },
): Promise<ComparisonResult> {
  const { db, ingest } = deps
  const seen = await readBalances(deps, account)
  // Records up to the baseline are never imported.
  const explainedMs = Math.max(Number(account.reconciled_through_ms), Number(account.baseline_at_ms))
  const sinceMs = Math.max(explainedMs - overlapMs, 0)
  let compared = await findDifferences(db, account, seen)
  for (const read of [readFills, readChanges]) {
    if (compared.found.length === 0 && !(thorough && read === readFills)) break
    const foreign = await ingest(account, await read(deps, account.account, sinceMs))
    if (foreign?.isCertain) return { type: 'foreign', mismatch: foreign }
    if (foreign) return { type: 'mismatch', found: [], atMs: seen.atMs, mismatch: foreign }
    compared = await findDifferences(db, account, seen)
  }
  const { atMs } = seen
  const found = await onlyComparable(deps, account, compared.found)
  if (found.length > 0) {
    const code = found.some(isPosition) ? 'position' : 'balance'
    // A mismatch of balances that freezes no account may last for long. All lists were read, so the baseline may roll
    // in spite of it.
    if (code === 'balance') await rollBaseline(deps, account, { ...compared, atMs, rounding: [] })
    return { type: 'mismatch', found, atMs, mismatch: { code, reason: describeDifferences(found) } }
  }
  const result = await checkOutcomes(db, account, atMs)
  // Differences that were left out as not comparable must not count as rounding.
  const rounding = compared.found.length > 0 ? [] : compared.rounding
  if (result.type === 'matched') await rollBaseline(deps, account, { ...compared, atMs, rounding })
  return result
}
