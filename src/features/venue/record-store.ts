import type { Tx } from '#kernel/task.ts'
import { type Queryable, send } from '#store/query.ts'
import type { VenueAccount } from './account-store.ts'
import { apartOf, type Balances, type ChangeRow, type Difference, type FillRow } from './agreement.ts'
import { venueName } from './store.ts'

/** What happened at the venue, as far as it was told, and what follows from it. */

type Whose = Pick<VenueAccount, 'user_id'>

/** What is new of it; the rest was there already. */
export async function addFills(tx: Tx, { user_id }: Whose, rows: readonly FillRow[]): Promise<Set<number>> {
  if (rows.length === 0) return new Set()
  const added = await send<{ trade_id: bigint }>(
    tx,
    `insert into venue_fill (user_id, venue, trade_id, order_id, cloid, symbol, base, quote, signed_size, price, fee, fee_token, cause, at_ms, realized_pnl)
     select $1, $2, trade_id, order_id, cloid, symbol, base, quote, signed_size, price, fee, fee_token, cause, at_ms, realized_pnl
     from jsonb_to_recordset($3::jsonb) as f (trade_id bigint, order_id bigint, cloid text, symbol text, base text, quote text,
       signed_size numeric, price numeric, fee numeric, fee_token text, cause text, at_ms bigint, realized_pnl numeric)
     on conflict do nothing returning trade_id`,
    [user_id, venueName, JSON.stringify(rows)],
  )
  return new Set(added.map(({ trade_id }) => Number(trade_id)))
}

export async function addChanges(
  tx: Tx,
  { user_id }: Whose,
  rows: readonly ChangeRow[],
): Promise<Set<string>> {
  if (rows.length === 0) return new Set()
  const added = await send<{ key: string }>(
    tx,
    `insert into venue_change (user_id, venue, key, kind, place, amount, reason, at_ms)
     select $1, $2, key, kind, place, amount, reason, at_ms
     from jsonb_to_recordset($3::jsonb) as c (key text, kind text, place text, amount numeric, reason text, at_ms bigint)
     on conflict do nothing returning key`,
    [user_id, venueName, JSON.stringify(rows)],
  )
  return new Set(added.map(({ key }) => key))
}

export async function knownFills(on: Queryable, { user_id }: Whose, tradeIds: readonly number[]) {
  const rows = await send<{ trade_id: bigint }>(
    on,
    'select trade_id from venue_fill where user_id = $1 and venue = $2 and trade_id = any($3::bigint[])',
    [user_id, venueName, tradeIds],
  )
  return new Set(rows.map(({ trade_id }) => Number(trade_id)))
}

export async function lastFillMs(on: Queryable, { user_id }: Whose): Promise<number> {
  const [row] = await send<{ at_ms: bigint | null }>(
    on,
    'select max(at_ms) as at_ms from venue_fill where user_id = $1 and venue = $2',
    [user_id, venueName],
  )
  return Number(row?.at_ms ?? 0)
}

/** Orders of which some other fill is on record: their liquidation was told already. */
export async function ordersTold(
  tx: Tx,
  { user_id }: Whose,
  orderIds: readonly number[],
  except: readonly number[],
) {
  const rows = await send<{ order_id: bigint }>(
    tx,
    `select distinct order_id from venue_fill where user_id = $1 and venue = $2 and order_id = any($3::bigint[])
       and trade_id <> all($4::bigint[])`,
    [user_id, venueName, orderIds, except],
  )
  return new Set(rows.map(({ order_id }) => Number(order_id)))
}

const expectation = `
  with f as (select * from venue_fill where user_id = $1 and venue = $2 and at_ms > $3 and at_ms <= $4),
    c as (select * from venue_change where user_id = $1 and venue = $2 and at_ms > $3 and at_ms <= $4 and place is not null),
    moves (place, amount, entries) as (
      select place, amount, 0 from venue_baseline where user_id = $1 and venue = $2
      union all select 'position:' || symbol, signed_size, 1 from f where base is null
      union all select 'cash', -signed_size * price - fee, 0 from f where base is null
      union all select 'spot:' || base, signed_size - case when fee_token = base then fee else 0 end, 1 from f where base is not null
      union all select 'spot:' || quote, -signed_size * price - case when fee_token = quote then fee else 0 end, 0
        from f where base is not null
      union all select place, amount, 1 from c)
  select place, trim_scale(sum(amount))::text as amount, sum(entries)::integer as entries from moves
  where $5 or starts_with(place, 'position:') group by place`

/** What the account should hold at that moment of the venue's clock. */
export async function expectedAt(
  on: Queryable,
  { user_id, baseline_ms, balances }: Pick<VenueAccount, 'user_id' | 'baseline_ms' | 'balances'>,
  atMs: number,
): Promise<{ places: Balances; entries: number }> {
  const rows = await send<{ place: string; amount: string; entries: number }>(on, expectation, [
    user_id,
    venueName,
    baseline_ms,
    atMs,
    balances,
  ])
  const entries = rows.reduce((sum, row) => sum + row.entries, 0)
  return { places: new Map(rows.map(({ place, amount }) => [place, amount])), entries }
}

/** Kinds of changes since then that nobody can add up. */
export async function unexplainedSince(
  on: Queryable,
  { user_id, agreed_ms }: Pick<VenueAccount, 'user_id' | 'agreed_ms'>,
) {
  const rows = await send<{ kind: string }>(
    on,
    `select distinct kind from venue_change where user_id = $1 and venue = $2 and place is null and at_ms > $3 order by kind`,
    [user_id, venueName, agreed_ms],
  )
  return rows.map(({ kind }) => kind)
}

/** What is not explained is written down with the reason why it is believed, and never hidden in a balance. */
export const adjust = (
  tx: Tx,
  whose: Whose,
  found: readonly Difference[],
  { kind, reason, atMs }: { kind: string; reason: string; atMs: number },
) =>
  addChanges(
    tx,
    whose,
    found.map((each) => ({
      key: `${kind}:${atMs}:${each.place}`,
      kind,
      place: each.place,
      amount: apartOf(each),
      reason,
      at_ms: atMs,
    })),
  )

export async function setBaseline(
  tx: Tx,
  { user_id }: Whose,
  places: Balances,
  { atMs, balances }: { atMs: number; balances: boolean },
) {
  await send(tx, 'delete from venue_baseline where user_id = $1 and venue = $2', [user_id, venueName])
  await send(
    tx,
    `insert into venue_baseline (user_id, venue, place, amount)
     select $1, $2, place, amount from jsonb_to_recordset($3::jsonb) as b (place text, amount numeric)`,
    [user_id, venueName, JSON.stringify([...places].map(([place, amount]) => ({ place, amount })))],
  )
  await send(
    tx,
    `update venue_account set state = 'active', baseline_ms = $3, agreed_ms = $3, balances = $4,
       suspicion = null, suspected_at = null, reason = null, since = null, lifted_by = null where user_id = $1 and venue = $2`,
    [user_id, venueName, atMs, balances],
  )
}

/** Tasks that say something else of their orders than the fills do. */
export async function contradictions(on: Queryable, { user_id, baseline_ms }: VenueAccount, sinceMs: number) {
  return send<{ task_id: string; said: string; filled: string }>(
    on,
    `with f as (select cloid, trim_scale(sum(abs(signed_size))) as filled from venue_fill
       where user_id = $1 and venue = $2 and at_ms > greatest($3::bigint, $4::bigint) and cloid is not null group by cloid)
     select t.id::text as task_id, f.filled::text, coalesce(t.result ->> 'filled_size', t.outcome) as said
     from f join venue_order o on o.cloid = f.cloid join task t on t.id = o.task_id
     where t.completed_at is not null and (t.outcome = 'not_executed'
       or (t.result ->> 'cloid' = f.cloid and t.result ->> 'order_status' = 'filled' and (t.result ->> 'filled_size')::numeric <> f.filled))
     limit 5`,
    [user_id, venueName, baseline_ms, sinceMs],
  )
}

export async function wasSigned(on: Queryable, account: string, nonce: number | null): Promise<boolean> {
  if (nonce === null) return false
  const rows = await send(
    on,
    // By way of the lane, since the numbers are indexed behind the chain.
    `select 1 as one from lane l join carrier c on c.lane_kind = l.kind and c.chain = l.chain and c.signer = l.signer
     where l.kind = 'hyperliquid' and l.signer = $1 and c.nonce = $2 limit 1`,
    [account, nonce],
  )
  return rows.length > 0
}
