import type { ScheduleRun } from '#kernel/contract/caller.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import { changesSql, ownerJoins, ownerOf } from './balance-change-owners.ts'
import { positionBalanceKey } from './expected-balances.ts'
import { venueName } from './order-store.ts'
import { type Change, ownAfter, toMoves } from './schedule-part.ts'

/**
 * This module computes which part of a holding a run of a schedule may reduce, whatever its limits are: the part that
 * the schedule has opened. If it is not known whether the schedule still holds a size, the size counts as reduced, so
 * that a run reduces too little rather than something that the schedule has not opened.
 */

/** The key under which the records have the balance of a holding. */
export type HoldingRecord = { balance_key: string }
/**
 * The data of a reducing task store about the part its schedule, the key of the holding, and the size that the account
 * held at the admission.
 */
export type OwnPart = HoldingRecord & { schedule: string; total: string }

type Holding = HoldingRecord & {
  userId: string
  market: 'perp' | 'spot'
  symbol: string
  /** Whether the holding is a long position or a spot balance; false for a short position. */
  isLong: boolean
  /**
   * Sizes without a sign: `total` is the whole holding, and `held` is what the open orders of the account do not
   * reserve.
   */
  total: string
  held: string
}

/**
 * Returns the size that a caller may reduce: the part that the schedule of the run has opened, or all that is held if
 * no schedule bounds the caller.
 */
export async function reduciblePart(
  db: Queryable,
  run: ScheduleRun | undefined,
  holding: Holding,
): Promise<string> {
  const { held, symbol } = holding
  if (!run?.reducesOwn) return held
  const own = await ownPart(db, { ...holding, schedule: run.schedule, taskId: null })
  if (own === '0') throw notOwned(symbol, own)
  return compareDecimals(own, held) < 0 ? own : held
}

/**
 * Returns what the data of a reducing task stores about the part of the schedule; nothing if no schedule bounds the
 * caller.
 */
export const ownPartOf = (
  run: ScheduleRun | undefined,
  { balance_key, total }: HoldingRecord & { total: string },
): { own_part?: OwnPart } =>
  run?.reducesOwn ? { own_part: { schedule: run.schedule, balance_key, total } } : {}

type Reducer = {
  userId: string
  taskId: string
  data: { own_part?: OwnPart; market: 'perp' | 'spot'; symbol: string; is_buy: boolean; size: string }
}

/**
 * Throws, in the transaction that signs a reducing order, if the part of the schedule has become smaller than the
 * order. A lock lets one transaction of a schedule sign at a time, so each sees the orders that were signed before its
 * own.
 */
export async function assertReducible(tx: Tx, { userId, taskId, data }: Reducer): Promise<void> {
  const { own_part: part, market, symbol, is_buy: isBuy, size } = data
  if (!part) return
  const lock = `own part ${part.schedule} ${market} ${symbol}`
  await query(tx, 'select pg_advisory_xact_lock(hashtextextended($1, 0))', [lock])
  const own = await ownPart(tx, { ...part, userId, market, symbol, isLong: !isBuy, taskId })
  if (compareDecimals(own, size) < 0) throw notOwned(symbol, own)
}

/** Returns what the schedule still holds after a reducing order whose fills the data of its task have. */
export const partAfter = (db: Queryable, { userId, taskId, data }: Reducer): Promise<string> =>
  ownPart(db, {
    ...data.own_part!,
    userId,
    market: data.market,
    symbol: data.symbol,
    isLong: !data.is_buy,
    taskId,
  })

type PlacedBy = Pick<Holding, 'userId' | 'market' | 'symbol'> & { schedule: string; isBuy: boolean }

/** Returns the task of each exit that a schedule has placed at the venue for a holding, by client order id. */
export async function placedExits(
  db: Queryable,
  { userId, market, symbol, schedule, isBuy }: PlacedBy,
): Promise<Map<string, string>> {
  const values = [userId, venueName, market, symbol, schedule, isBuy]
  const rows = await query<{ cloid: string; task_id: string }>(db, exitsSql, values)
  return new Map(rows.map(({ cloid, task_id }) => [cloid, task_id]))
}

/** The exits are a range of venue_order_of_end; $6 is the side of the orders that reduce. */
const exitsSql = `
  select o.cloid, o.task_id from venue_order o left join task t on t.id = o.task_id
    ${ownerJoins}
  where o.user_id = $1 and o.venue = $2 and o.market = $3 and o.symbol = $4 and o.ended_at is null
    and o.trigger_price is not null and o.is_buy = $6 and ${ownerOf} = $5`

const notOwned = (symbol: string, own: string) =>
  new Fault(
    'policy_denied',
    `The schedule has opened nothing more of ${symbol} that is still open and that no order of it may close`,
    {
      extras: {
        rule: 'own_position',
        limit: own,
        remaining: own,
        reason: 'a run reduces what it has opened',
      },
    },
  )

type Asked = Omit<Holding, 'held'> & { schedule: string; taskId: string | null }
type MovesRow = { is_compared: boolean; baseline: string; own_before: string; moves: Change[] }

async function ownPart(db: Queryable, asked: Asked): Promise<string> {
  const { userId, market, symbol, isLong, schedule, balance_key: balanceKey, taskId, total } = asked
  const side = isLong ? 1n : -1n
  const common = [userId, venueName, market, symbol, schedule]
  // An order that settles between the two statements counts twice rather than not at all.
  const [waiting] = await query<{ pending: string }>(db, pendingSql, [...common, Number(side), taskId, total])
  const [row] = await query<MovesRow>(db, movesSql, [...common, balanceKey])
  if (!row || !waiting) return '0'
  const shown = toFixedPoint(total)
  const { own, recorded } = partOf(row, { schedule, side, shown: row.is_compared ? undefined : shown })
  // If the account holds less than its record says, orders whose fills are not known yet have reduced the difference.
  const unexplained = recorded > shown ? recorded - shown : 0n
  const left = own - toFixedPoint(waiting.pending) - unexplained
  return left > 0n ? fromFixedPoint(left) : '0'
}

type Side = { schedule: string; side: 1n | -1n; shown?: bigint | undefined }

/** Returns the part of a schedule by its record, and the size of the whole holding by that record. */
function partOf(row: MovesRow, { schedule, side, shown }: Side): { own: bigint; recorded: bigint } {
  const moves = toMoves(row.moves, { schedule, side })
  const explained = moves.reduce((sum, { change }) => sum + change, side * toFixedPoint(row.baseline))
  const recorded = shown ?? explained
  const ownBefore = side * toFixedPoint(row.own_before)
  return {
    own: ownAfter(moves, { position: recorded, ownBefore: ownBefore > 0n ? ownBefore : 0n }),
    recorded,
  }
}

export type OwnPosition = {
  isLong: boolean
  size: string
  /** Whether no order is left that may still reduce it, or whose fills are not known. */
  isSettled: boolean
}

/** Returns the part of a position that a schedule has opened, by the record alone; undefined if it has no part. */
export async function ownPosition(
  db: Queryable,
  { userId, symbol, schedule }: { userId: string; symbol: string; schedule: string },
): Promise<OwnPosition | undefined> {
  const common = [userId, venueName, 'perp', symbol, schedule]
  const [row] = await query<MovesRow>(db, movesSql, [...common, positionBalanceKey(symbol)])
  if (!row) return undefined
  for (const side of [1n, -1n] as const) {
    const { own } = partOf(row, { schedule, side })
    if (own <= 0n) continue
    const size = fromFixedPoint(own)
    const [waiting] = await query<{ pending: string }>(db, pendingSql, [...common, Number(side), null, size])
    return {
      isLong: side === 1n,
      size,
      isSettled: waiting !== undefined && toFixedPoint(waiting.pending) === 0n,
    }
  }
  return undefined
}

/** $1 is the user, $2 the venue, $3 the market, $4 the symbol of the market and $5 the schedule. */
const accountSql = `
  select coalesce(a.baseline_at_ms, 0) as baseline_at_ms, coalesce(a.checks_balances, false) or $3 = 'perp' as is_compared,
    to_timestamp(coalesce(a.reconciled_through_ms, 0) / 1000.0) as reconciled_at
  from (values (1)) always left join venue_account a on a.user_id = $1 and a.venue = $2`

/** The orders of which a fill may not be imported yet, or may still come; both parts are ranges of venue_order_of_end. */
const unsettledSql = `
  select * from venue_order where user_id = $1 and venue = $2 and market = $3 and symbol = $4 and ended_at is null
  union all
  select * from venue_order where user_id = $1 and venue = $2 and market = $3 and symbol = $4
    and ended_at > (select reconciled_at from account) - interval '1 minute'`

/**
 * Reads the changes of the holding since the baseline: those that were imported, and the fills that tasks have seen
 * before the import. $6 is the key of the balance.
 */
const movesSql = `
with account as materialized (${accountSql}),
  unsettled as (${unsettledSql}),
  changed as materialized (${changesSql({
    afterMs: '(select baseline_at_ms from account)',
    untilMs: String(Number.MAX_SAFE_INTEGER),
    balanceKey: '$6',
  })}),
  seen as (
    select distinct on (trade_id) (fill ->> 'fill_id')::bigint as trade_id, ${ownerOf} as owner,
      (extract(epoch from (fill ->> 'at')::timestamptz) * 1000)::bigint as at_ms,
      case fill ->> 'side' when 'buy' then 1 else -1 end * (fill ->> 'size')::numeric
        - case when 'spot:' || (fill ->> 'fee_token') = $6 then (fill ->> 'fee')::numeric else 0 end as change
    from unsettled o join task t on t.id = o.task_id
      ${ownerJoins},
      jsonb_array_elements(case jsonb_typeof(t.data -> 'fills') when 'array' then t.data -> 'fills' end) fill),
  moved as (
    select at_ms, trade_id, owner, change from changed
    union all
    select at_ms, trade_id, owner, change from seen s where at_ms > (select baseline_at_ms from account)
      and not exists (select from venue_fill where user_id = $1 and venue = $2 and trade_id = s.trade_id))
select a.is_compared,
  coalesce((select amount from venue_baseline where user_id = $1 and venue = $2 and balance_key = $6), 0)::text as baseline,
  coalesce((select amount from venue_own_part
    where user_id = $1 and venue = $2 and balance_key = $6 and strategy_id = $5::uuid), 0)::text as own_before,
  (select coalesce(jsonb_agg(jsonb_build_array(owner, change::text) order by at_ms, trade_id), '[]') from moved) as moves
from account a`

/**
 * Sums what orders of the schedule may still reduce: the rest of each one that was signed and whose last fill may not be
 * known, and the size of each task that has not signed yet. $6 is 1 for a long holding and -1 for a short one, $7 the
 * task that signs now, which counts only what was signed before it, and $8 what the account holds. An exit that waits
 * for its price reduces nothing before it fires.
 */
const pendingSql = `
with account as materialized (${accountSql}),
  unsettled as materialized (${unsettledSql}),
  signed as (
    select o.size - coalesce((select sum(abs(signed_size)) from venue_fill
      where cloid = o.cloid and user_id = $1 and venue = $2), 0) as size
    from account a cross join unsettled o left join task t on t.id = o.task_id
      ${ownerJoins}
    where ${ownerOf} = $5 and o.is_buy is distinct from ($6::integer > 0) and o.task_id is distinct from $7::uuid
      and (o.ended_at is null or o.ended_at > a.reconciled_at)
      and (o.trigger_price is null or o.status = 'filled')
      and (t.completed_at is null or not (t.outcome = 'not_executed'
        or coalesce(t.result ->> 'cloid' = o.cloid and not coalesce((t.result ->> 'resting')::boolean, false), false)))),
  unsigned as (
    select coalesce((t.data ->> 'size')::numeric, (t.input ->> 'size')::numeric, $8::numeric) as size
    from task_queue q join task t on t.id = q.task_id
      ${ownerJoins}
    where q.user_id = $1 and t.id is distinct from $7 and ($7 is null or t.kind = 'spot_trigger')
      and ${ownerOf} = $5 and coalesce(t.data ->> 'symbol', t.input ->> 'symbol') = $4
      and case when t.kind = 'spot_trigger' then $3 = 'spot'
        else t.data ->> 'market' = $3 and (t.data ->> 'is_buy')::boolean is distinct from ($6 > 0) end
      and not exists (select from unsettled s where s.task_id = t.id))
select (coalesce((select sum(greatest(size, 0)) from signed), 0) + coalesce((select sum(size) from unsigned), 0))::text as pending`
