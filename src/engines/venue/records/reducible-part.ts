import type { ScheduleRun } from '#kernel/contract/caller.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import { adoptedKind } from '#store/record-found-effect.ts'
import { venueName } from './order-store.ts'

/**
 * This module computes which part of a holding a run of a schedule may reduce, whatever its limits are: the part that
 * the schedule has opened. If it is not known whether the schedule still holds a size, the size counts as reduced, so
 * that a run reduces too little rather than something that the schedule has not opened.
 */

/** The keys of a holding's records: `coin` is the market of its fills, and `balance_key` is the key of its balance. */
export type HoldingRecord = { coin: string; balance_key: string }
/**
 * What the data of a reducing task stores about the part: its schedule, the keys of the holding, and the size that the
 * account held at the admission.
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
  { coin, balance_key, total }: HoldingRecord & { total: string },
): { own_part?: OwnPart } =>
  run?.reducesOwn ? { own_part: { schedule: run.schedule, coin, balance_key, total } } : {}

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

type Owner = 'own' | 'other' | 'unknown'
/** A change of the holding; a positive one enlarges it. */
export type Move = { owner: Owner; change: bigint }

/**
 * Returns how much of the holding belongs to the schedule after all moves, of which the last one left the holding at
 * `position`. A reduction by others takes from their own part first. The part is never larger than the holding, so a
 * position that others have closed and opened again does not belong to the schedule. A reduction whose owner is
 * unknown, such as a liquidation, takes from the schedule first.
 */
export function ownAfter(moves: readonly Move[], position: bigint): bigint {
  let [own, held] = [0n, moves.reduce((rest, { change }) => rest - change, position)]
  for (const { owner, change } of moves) {
    held += change
    if (owner === 'own' || (owner === 'unknown' && change < 0n)) own += change
    if (own > held) own = held
    if (own < 0n) own = 0n
  }
  return own
}

type OwnRow = {
  is_compared: boolean | null
  recorded: string
  pending: string
  moves: [Owner, string][]
}
type Asked = Omit<Holding, 'held'> & { schedule: string; taskId: string | null }

async function ownPart(db: Queryable, asked: Asked): Promise<string> {
  const { userId, market, symbol, isLong, schedule, coin, balance_key: balanceKey, taskId, total } = asked
  const [row] = await query<OwnRow>(db, ownSql, [
    userId,
    venueName,
    market,
    symbol,
    isLong ? 1 : -1,
    schedule,
    coin,
    balanceKey,
    taskId,
    total,
  ])
  if (!row) return '0'
  const moves = row.moves.map(([owner, change]): Move => ({ owner, change: toFixedPoint(change) }))
  const shown = toFixedPoint(total)
  const recorded = row.is_compared ? toFixedPoint(row.recorded) : shown
  // If the account holds less than its record says, orders whose fills are not known yet have reduced the difference.
  const unexplained = recorded > shown ? recorded - shown : 0n
  const own = ownAfter(moves, recorded) - toFixedPoint(row.pending) - unexplained
  return own > 0n ? fromFixedPoint(own) : '0'
}

/**
 * SQL that finds the owner of a task `t`. If the gateway held an exit, the task that sells it has the owner of the task
 * that requested the exit.
 */
const ownerJoins = `left join trigger_order g on t.kind = 'spot_trigger' and g.id = (t.data ->> 'trigger_order_id')::uuid
      left join task source on source.id = g.source_task_id
      left join strategy_execution e on e.id = coalesce(source.parent_id, t.parent_id)`
const ownerOf = `case when e.strategy_id = $6 then 'own'
      when t.id is null or t.kind = '${adoptedKind}' or (t.kind = 'spot_trigger' and source.id is null)
        or (coalesce(source.parent_id, t.parent_id) is not null and e.id is null) then 'unknown'
      else 'other' end`

/**
 * The query reads two index ranges. The orders of the market are a range of `venue_order_of_symbol`, because the venue
 * and the market are given, and their tasks, runs and fills are found by id. The fills of the market are a range of
 * `venue_fill_of_symbol` that begins with the first fill of the schedule or with the baseline. Fills in the result of a
 * task count before they are imported.
 *
 * `pending` is what orders of the schedule may still reduce: the rest of each order that was signed and whose last fill
 * may not be known, and the size of each task that has not signed yet. $9 is the task that signs now; it counts only
 * what was signed before it. An exit that waits for its price reduces nothing before it fires.
 */
const ownSql = `
with account as (
    select a.baseline_at_ms, to_timestamp(a.reconciled_through_ms / 1000.0) as reconciled_at,
      a.checks_balances or $3 = 'perp' as is_compared
    from (values (1)) always left join venue_account a on a.user_id = $1 and a.venue = $2),
  sent as materialized (
    select o.cloid, o.task_id, o.size, o.trigger_price, o.status, o.is_buy is distinct from ($5::integer > 0) as reduces,
      coalesce(o.ended_at <= a.reconciled_at, false) as is_imported,
      t.completed_at, t.outcome = 'not_executed' as is_nothing, t.data -> 'fills' as fills,
      t.result ->> 'cloid' = o.cloid and not coalesce((t.result ->> 'resting')::boolean, false) as is_known,
      ${ownerOf} as owner, f.filled, f.first_ms
    from account a cross join venue_order o left join task t on t.id = o.task_id
      ${ownerJoins}
      left join lateral (select sum(abs(signed_size)) as filled, min(at_ms) as first_ms from venue_fill
        where cloid = o.cloid and user_id = $1 and venue = $2) f on true
    where o.user_id = $1 and o.venue = $2 and o.market = $3 and o.symbol = $4),
  since as (
    select least(min(a.baseline_at_ms), min(s.first_ms)) as at_ms
    from account a left join sent s on s.owner = 'own' and not s.reduces),
  seen as (
    select distinct on (trade_id) (fill ->> 'fill_id')::bigint as trade_id, s.owner,
      (extract(epoch from (fill ->> 'at')::timestamptz) * 1000)::bigint as at_ms,
      case fill ->> 'side' when 'buy' then 1 else -1 end * (fill ->> 'size')::numeric
        - case when 'spot:' || (fill ->> 'fee_token') = $8 then (fill ->> 'fee')::numeric else 0 end as change
    from account a join sent s on s.completed_at > a.reconciled_at - interval '1 minute',
      jsonb_array_elements(case jsonb_typeof(s.fills) when 'array' then s.fills end) fill),
  moved as materialized (
    select f.at_ms, f.trade_id, coalesce(s.owner, 'unknown') as owner,
      $5 * (f.signed_size - case when f.fee_token = f.base then f.fee else 0 end) as change
    from venue_fill f left join sent s on s.cloid = f.cloid
    where f.user_id = $1 and f.venue = $2 and f.symbol = $7 and f.at_ms >= (select at_ms from since)
    union all
    select n.at_ms, n.trade_id, n.owner, $5 * n.change from account a join seen n on n.at_ms > a.baseline_at_ms
    where not exists (select from venue_fill f where f.user_id = $1 and f.venue = $2 and f.trade_id = n.trade_id)
    union all
    select at_ms, null, case when reason is null then 'other' else 'unknown' end, $5 * amount from venue_ledger_entry
    where user_id = $1 and venue = $2 and balance_key = $8 and at_ms >= (select at_ms from since)),
  unsigned as (
    select coalesce((t.data ->> 'size')::numeric, (t.input ->> 'size')::numeric, $10::numeric) as size
    from task_queue q join task t on t.id = q.task_id
      ${ownerJoins}
    where q.user_id = $1 and t.id is distinct from $9::uuid and ($9 is null or t.kind = 'spot_trigger')
      and ${ownerOf} = 'own' and coalesce(t.data ->> 'symbol', t.input ->> 'symbol') = $4
      and case when t.kind = 'spot_trigger' then $3 = 'spot'
        else t.data ->> 'market' = $3 and (t.data ->> 'is_buy')::boolean is distinct from ($5 > 0) end
      and not exists (select from sent s where s.task_id = t.id))
select a.is_compared,
  (coalesce((select $5 * amount from venue_baseline where user_id = $1 and venue = $2 and balance_key = $8), 0)
    + coalesce((select sum(change) from moved m where m.at_ms > a.baseline_at_ms), 0))::text as recorded,
  (coalesce((select sum(size) from unsigned), 0)
    + coalesce((select sum(greatest(s.size - coalesce(s.filled, 0), 0)) from sent s
      where s.owner = 'own' and s.reduces and s.task_id is distinct from $9 and not s.is_imported
        and (s.completed_at is null or not (coalesce(s.is_nothing, false) or coalesce(s.is_known, false)))
        and (s.trigger_price is null or s.status = 'filled')), 0))::text as pending,
  (select coalesce(jsonb_agg(jsonb_build_array(owner, change::text) order by at_ms, trade_id), '[]') from moved) as moves
from account a`
