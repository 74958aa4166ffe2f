import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import { foundReceipt } from '#store/record-found-effect.ts'
import type { VenueAccount } from './account-store.ts'
import {
  type Balances,
  type Difference,
  deviationOf,
  type FillRow,
  type VenueLedgerEntryRow,
} from './expected-balances.ts'
import { venueName } from './order-store.ts'
import { storeScheduleParts } from './schedule-part-baseline.ts'

type AccountKey = Pick<VenueAccount, 'user_id'>
type RecordedAccount = Pick<VenueAccount, 'user_id' | 'baseline_at_ms' | 'checks_balances'>

export async function addFills(
  tx: Tx,
  { user_id }: AccountKey,
  rows: readonly FillRow[],
): Promise<Set<number>> {
  if (rows.length === 0) return new Set()
  const added = await query<{ trade_id: bigint }>(
    tx,
    `insert into venue_fill (user_id, venue, trade_id, order_id, cloid, symbol, base, quote, signed_size, price, fee, fee_token, cause, at_ms, realized_pnl,
       tx_hash)
     select $1, $2, trade_id, order_id, cloid, symbol, base, quote, signed_size, price, fee, fee_token, cause, at_ms, realized_pnl,
       tx_hash
     from jsonb_to_recordset($3::jsonb) as f (trade_id bigint, order_id bigint, cloid text, symbol text, base text, quote text,
       signed_size numeric, price numeric, fee numeric, fee_token text, cause text, at_ms bigint, realized_pnl numeric, tx_hash text)
     on conflict do nothing returning trade_id`,
    [user_id, venueName, JSON.stringify(rows)],
  )
  return new Set(added.map(({ trade_id }) => Number(trade_id)))
}

export async function addLedgerEntries(
  tx: Tx,
  { user_id }: AccountKey,
  rows: readonly VenueLedgerEntryRow[],
): Promise<Set<string>> {
  if (rows.length === 0) return new Set()
  const added = await query<{ key: string }>(
    tx,
    `insert into venue_ledger_entry (user_id, venue, key, kind, balance_key, amount, reason, at_ms)
     select $1, $2, key, kind, balance_key, amount, reason, at_ms
     from jsonb_to_recordset($3::jsonb) as c (key text, kind text, balance_key text, amount numeric, reason text, at_ms bigint)
     on conflict do nothing returning key`,
    [user_id, venueName, JSON.stringify(rows)],
  )
  return new Set(added.map(({ key }) => key))
}

export async function knownFills(db: Queryable, { user_id }: AccountKey, tradeIds: readonly number[]) {
  const rows = await query<{ trade_id: bigint }>(
    db,
    'select trade_id from venue_fill where user_id = $1 and venue = $2 and trade_id = any($3::bigint[])',
    [user_id, venueName, tradeIds],
  )
  return new Set(rows.map(({ trade_id }) => Number(trade_id)))
}

export async function lastFillMs(db: Queryable, { user_id }: AccountKey): Promise<number> {
  const [row] = await query<{ at_ms: bigint | null }>(
    db,
    'select max(at_ms) as at_ms from venue_fill where user_id = $1 and venue = $2',
    [user_id, venueName],
  )
  return Number(row?.at_ms ?? 0)
}

/**
 * Returns those of the orders for which a liquidation fill other than `except` is stored, so that their liquidation
 * event exists already.
 */
export async function reportedOrders(
  tx: Tx,
  { user_id }: AccountKey,
  orderIds: readonly number[],
  except: readonly number[],
) {
  const rows = await query<{ order_id: bigint }>(
    tx,
    `select distinct order_id from venue_fill where user_id = $1 and venue = $2 and order_id = any($3::bigint[])
       and cause = 'liquidation' and trade_id <> all($4::bigint[])`,
    [user_id, venueName, orderIds, except],
  )
  return new Set(rows.map(({ order_id }) => Number(order_id)))
}

const expectation = `
  with f as (select * from venue_fill where user_id = $1 and venue = $2 and at_ms > $3 and at_ms <= $4),
    c as (select * from venue_ledger_entry where user_id = $1 and venue = $2 and at_ms > $3 and at_ms <= $4 and balance_key is not null),
    moves (balance_key, amount, entries) as (
      select balance_key, amount, 0 from venue_baseline where user_id = $1 and venue = $2
      union all select 'position:' || symbol, signed_size, 1 from f where base is null
      union all select 'cash', -signed_size * price - fee, 0 from f where base is null
      union all select 'spot:' || base, signed_size - case when fee_token = base then fee else 0 end, 1 from f where base is not null
      union all select 'spot:' || quote, -signed_size * price - case when fee_token = quote then fee else 0 end, 0
        from f where base is not null
      union all select balance_key, amount, 1 from c)
  select balance_key, trim_scale(sum(amount))::text as amount, sum(entries)::integer as entries from moves
  where $5 or starts_with(balance_key, 'position:') group by balance_key`

/** Returns the balances of an account that its records expect at a time of the venue's clock. */
export async function expectedAt(
  db: Queryable,
  { user_id, baseline_at_ms, checks_balances }: RecordedAccount,
  atMs: number,
): Promise<{ expected: Balances; entries: number }> {
  const rows = await query<{ balance_key: string; amount: string; entries: number }>(db, expectation, [
    user_id,
    venueName,
    baseline_at_ms,
    atMs,
    checks_balances,
  ])
  const entries = rows.reduce((sum, row) => sum + row.entries, 0)
  return { expected: new Map(rows.map(({ balance_key, amount }) => [balance_key, amount])), entries }
}

/** Returns the kinds of ledger entries since the last reconciliation whose effect on a balance is unknown. */
export async function unexplainedSince(
  db: Queryable,
  { user_id, reconciled_through_ms }: Pick<VenueAccount, 'user_id' | 'reconciled_through_ms'>,
) {
  const rows = await query<{ kind: string }>(
    db,
    `select distinct kind from venue_ledger_entry where user_id = $1 and venue = $2 and balance_key is null and at_ms > $3 order by kind`,
    [user_id, venueName, reconciled_through_ms],
  )
  return rows.map(({ kind }) => kind)
}

/** Records an unexplained difference as a ledger entry with a reason, never as a silent change of a balance. */
export const addAdjustments = (
  tx: Tx,
  accountKey: AccountKey,
  found: readonly Difference[],
  { kind, reason, atMs }: { kind: string; reason: string; atMs: number },
) =>
  addLedgerEntries(
    tx,
    accountKey,
    found.map((each) => ({
      key: `${kind}:${atMs}:${each.balanceKey}`,
      kind,
      balance_key: each.balanceKey,
      amount: deviationOf(each),
      reason,
      at_ms: atMs,
    })),
  )

const unfrozenKind = 'unfrozen'
/** Records that an operator has examined an account up to a time, even if no balance differed. */
export const addUnfrozen = (
  tx: Tx,
  accountKey: AccountKey,
  { reason, atMs }: { reason: string; atMs: number },
) =>
  addLedgerEntries(tx, accountKey, [
    {
      key: `${unfrozenKind}:${atMs}`,
      kind: unfrozenKind,
      balance_key: null,
      amount: null,
      reason,
      at_ms: atMs,
    },
  ])

/** Returns the venue's time of the last unfreeze, or 0 if the account was never unfrozen. */
export async function unfrozenMs(db: Queryable, userId: string): Promise<number> {
  const [row] = await query<{ at_ms: bigint | null }>(
    db,
    'select max(at_ms) as at_ms from venue_ledger_entry where user_id = $1 and venue = $2 and kind = $3',
    [userId, venueName, unfrozenKind],
  )
  return Number(row?.at_ms ?? 0)
}

/** Replaces the baseline of an account that the caller has locked. */
export async function replaceBaseline(
  tx: Tx,
  account: RecordedAccount,
  balances: Balances,
  atMs: number,
): Promise<void> {
  const { user_id } = account
  await storeScheduleParts(tx, account, { balances, atMs })
  await query(tx, 'delete from venue_baseline where user_id = $1 and venue = $2', [user_id, venueName])
  await query(
    tx,
    `insert into venue_baseline (user_id, venue, balance_key, amount)
     select $1, $2, balance_key, amount from jsonb_to_recordset($3::jsonb) as b (balance_key text, amount numeric)`,
    [
      user_id,
      venueName,
      JSON.stringify([...balances].map(([balance_key, amount]) => ({ balance_key, amount }))),
    ],
  )
  await query(tx, 'update venue_account set baseline_at_ms = $3 where user_id = $1 and venue = $2', [
    user_id,
    venueName,
    atMs,
  ])
}

/** Begins the record of an account anew: everything before its new baseline counts as explained. */
export async function setBaseline(
  tx: Tx,
  account: RecordedAccount,
  balances: Balances,
  { atMs, checksBalances }: { atMs: number; checksBalances: boolean },
) {
  await replaceBaseline(tx, { ...account, checks_balances: checksBalances }, balances, atMs)
  await query(
    tx,
    `update venue_account set state = 'active', reconciled_through_ms = $3, checks_balances = $4,
       mismatch = null, mismatch_since = null, reason = null, frozen_since = null, unfrozen_by = null where user_id = $1 and venue = $2`,
    [account.user_id, venueName, atMs, checksBalances],
  )
}

/** At most this many recent fills are compared. A baseline that rolls leaves fewer fills than this. */
const recentFillsMax = 5_000

/**
 * Returns tasks whose result contradicts the fills of their orders. All fills of each order are read, since a
 * baseline may lie between two of them. The lateral joins keep the plan to look-ups by key, whatever the
 * statistics.
 */
export async function outcomeMismatches(
  db: Queryable,
  { user_id, baseline_at_ms }: Pick<VenueAccount, 'user_id' | 'baseline_at_ms'>,
  sinceMs: number,
) {
  return query<{ task_id: string; said: string; filled: string }>(
    db,
    `with recent as materialized (select distinct cloid from (
       select cloid from venue_fill where user_id = $1 and venue = $2 and at_ms > greatest($3::bigint, $4::bigint)
       order by at_ms desc limit ${recentFillsMax}) last where cloid is not null)
     select o.task_id::text, f.filled::text, coalesce(t.result ->> 'filled_size', t.outcome) as said from recent
       cross join lateral (select task_id from venue_order where cloid = recent.cloid limit 1) o
       cross join lateral (select outcome, result from task where id = o.task_id and completed_at is not null limit 1) t
       cross join lateral (select trim_scale(sum(abs(signed_size))) as filled from venue_fill
         where cloid = recent.cloid and user_id = $1 and venue = $2) f
     where t.outcome = 'not_executed' or (t.result ->> 'cloid' = recent.cloid
       and t.result ->> 'order_status' = 'filled' and (t.result ->> 'filled_size')::numeric <> f.filled)
     limit 5`,
    [user_id, venueName, baseline_at_ms, sinceMs],
  )
}

/**
 * Returns who signed a withdrawal: `own` is a task of this database; `found` is an execution that an operator adopted,
 * without its signature. Undefined if no signature has this nonce.
 */
export async function signatureOf(
  db: Queryable,
  account: string,
  nonce: number | null,
): Promise<'own' | 'found' | undefined> {
  if (nonce === null) return undefined
  const [row] = await query<{ is_found: boolean }>(
    db,
    // The sequence is joined because the index of the nonces begins with kind and chain.
    `select e.policy_receipt = $3 as is_found from nonce_sequence s
     join tx_attempt t on t.nonce_kind = s.kind and t.chain = s.chain and t.signer = s.signer
     join effect e on e.id = t.effect_id
     where s.kind = 'hyperliquid' and s.signer = $1 and t.nonce = $2 limit 1`,
    [account, nonce, foundReceipt],
  )
  return row && (row.is_found ? 'found' : 'own')
}
