import { fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import type { Tx } from '#kernel/task/task.ts'
import { jsonText, query } from '#store/query.ts'
import type { VenueAccount } from './account-store.ts'
import { changesSql } from './balance-change-owners.ts'
import { type Balances, positionBalanceKey } from './expected-balances.ts'
import { venueName } from './order-store.ts'
import { type Change, ownAfter, toMoves } from './schedule-part.ts'

/** Keeps what schedules hold at the baseline of an account, so that only later changes decide what they hold now. */

type Account = Pick<VenueAccount, 'user_id' | 'baseline_at_ms' | 'checks_balances'>
type NewBaseline = { balances: Balances; atMs: number }

type HeldRow = { balance_key: string; strategy_id: string; before: string; moves: Change[] }

/** The balances of which a schedule held a part at the baseline or has changed something since. */
const heldSql = `
with changed as materialized (${changesSql({ afterMs: '$3::bigint', untilMs: '$4::bigint' })}),
  held as (
    select balance_key, strategy_id::text as strategy_id from venue_own_part where user_id = $1 and venue = $2
    union select balance_key, owner from changed where owner not in ('other', 'unknown'))
select h.balance_key, h.strategy_id, coalesce(p.amount, 0)::text as before,
  (select coalesce(jsonb_agg(jsonb_build_array(c.owner, c.change::text) order by c.at_ms, c.trade_id), '[]')
    from changed c where c.balance_key = h.balance_key) as moves
from held h left join venue_own_part p on p.user_id = $1 and p.venue = $2 and p.balance_key = h.balance_key
  and p.strategy_id = h.strategy_id::uuid`

/** Stores what schedules hold at the next baseline; the caller has locked the account and replaces its baseline. */
export async function storeScheduleParts(
  tx: Tx,
  account: Account,
  { balances, atMs }: NewBaseline,
): Promise<void> {
  const { user_id: userId, baseline_at_ms: afterMs, checks_balances: checksBalances } = account
  const rows = await query<HeldRow>(tx, heldSql, [userId, venueName, afterMs, atMs])
  if (rows.length === 0) return
  const parts = rows.flatMap((row) => {
    const { balance_key, strategy_id } = row
    const isKnown = checksBalances || isPositionKey(balance_key)
    const amount = partOf(row, isKnown ? toFixedPoint(balances.get(balance_key) ?? '0') : undefined)
    return amount === 0n ? [] : [{ balance_key, strategy_id, amount: fromFixedPoint(amount) }]
  })
  await query(tx, 'delete from venue_own_part where user_id = $1 and venue = $2', [userId, venueName])
  await query(
    tx,
    `insert into venue_own_part (user_id, venue, balance_key, strategy_id, amount)
     select $1, $2, balance_key, strategy_id, amount
     from jsonb_to_recordset($3::jsonb) as p (balance_key text, strategy_id uuid, amount numeric)`,
    [userId, venueName, jsonText(parts)],
  )
}

const isPositionKey = (balanceKey: string): boolean => balanceKey.startsWith(positionBalanceKey(''))

/** Returns the part with the sign of the position; a schedule holds a part of one side at most. */
function partOf({ balance_key, strategy_id, before, moves }: HeldRow, position: bigint | undefined): bigint {
  const start = toFixedPoint(before)
  const schedule = strategy_id
  const long = ownAfter(toMoves(moves, { schedule, side: 1n }), {
    position,
    ownBefore: start > 0n ? start : 0n,
  })
  if (long > 0n || position === undefined || !isPositionKey(balance_key)) return long
  return -ownAfter(toMoves(moves, { schedule, side: -1n }), {
    position: -position,
    ownBefore: start < 0n ? -start : 0n,
  })
}
