import type { Drift } from '#market/strategies/drift.ts'
import type { StrategyFill } from '#market/strategies/fill-trades.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'
import type { StrategyFillRow, StrategyMode } from '#store/tables/strategies.ts'

/** The statements by which reports of strategies are made. */

export type AccountKey = { strategyId: string; mode: StrategyMode }

export type RunFacts = { title: string; number: number }

export async function findReportedRun(db: Queryable, executionId: string): Promise<RunFacts | undefined> {
  const [row] = await query<RunFacts>(
    db,
    `select s.title, e.number from strategy_execution e join strategy s on s.id = e.strategy_id where e.id = $1`,
    [executionId],
  )
  return row
}

const fillsMax = 2_000

/** Returns the newest fills, the oldest of them first. */
export function newestFills(db: Queryable, { strategyId, mode }: AccountKey): Promise<StrategyFillRow[]> {
  return query<StrategyFillRow>(
    db,
    `select strategy_id, mode, fill_id, execution_id, asset, is_buy, trim_scale(size)::text as size,
       trim_scale(price)::text as price, trim_scale(fee_usd)::text as fee_usd,
       trim_scale(realized_pnl_usd)::text as realized_pnl_usd, reason, is_exit, at
     from (select * from strategy_fill where strategy_id = $1 and mode = $2
       order by at desc, fill_id desc limit ${fillsMax}) f
     order by at, fill_id`,
    [strategyId, mode],
  )
}

export const fillOf = (row: StrategyFillRow): StrategyFill => ({
  asset: row.asset,
  isBuy: row.is_buy,
  size: row.size,
  price: row.price,
  feeUsd: row.fee_usd,
  realizedUsd: row.realized_pnl_usd,
  reason: row.reason,
  isExit: row.is_exit,
  executionId: row.execution_id,
  atMs: row.at.getTime(),
})

/** A curve has at most about this many points, out of at most so many rows. */
const pointsMax = 1_500
const rowsMax = 50_000

export type Worth = { atMs: number; usd: string }

/** Returns the worth of an account over time, the oldest first, evenly thinned out. */
export async function worthOf(db: Queryable, { strategyId, mode }: AccountKey): Promise<Worth[]> {
  const rows = await query<{ at: Date; usd: string }>(
    db,
    `select at, usd from (
       select at, equity_usd::text as usd, row_number() over (order by at desc) as place, count(*) over () as total
       from (select at, equity_usd from strategy_equity where strategy_id = $1 and mode = $2
         order by at desc limit ${rowsMax}) newest) s
     where (place - 1) % greatest(1, (total + ${pointsMax - 1}) / ${pointsMax}) = 0 order by at`,
    [strategyId, mode],
  )
  return rows.map(({ at, usd }) => ({ atMs: at.getTime(), usd }))
}

/** Returns when the last picture of a schedule was made. */
export async function lastPictureAt(db: Queryable, strategyId: string): Promise<Date | undefined> {
  const [row] = await query<{ created_at: Date }>(
    db,
    `select created_at from strategy_file where strategy_id = $1 and path like '%/equity.png'
     order by file_id desc limit 1`,
    [strategyId],
  )
  return row?.created_at
}

/** Returns when a version was made, and what was compared before. */
export async function comparedBefore(
  db: Queryable,
  { strategyId, mode, version }: AccountKey & { version: number },
): Promise<{ versionAt: Date | undefined; drift: Drift | null }> {
  const [row] = await query<{ created_at: Date | null; drift: object | null }>(
    db,
    `select v.created_at, a.drift from strategy_account a
       left join strategy_version v on v.strategy_id = a.strategy_id and v.version = $3
     where a.strategy_id = $1 and a.mode = $2`,
    [strategyId, mode, version],
  )
  return { versionAt: row?.created_at ?? undefined, drift: (row?.drift ?? null) as Drift | null }
}

const slotsMax = 20_000

/** Returns the times at which a version decided, the earliest first. */
export async function decisionTimes(
  db: Queryable,
  { strategyId, mode, version }: AccountKey & { version: number },
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<number[]> {
  const rows = await query<{ at: Date }>(
    db,
    `select coalesce(e.slot, d.at) as at from strategy_decision d join strategy_execution e on e.id = d.execution_id
     where d.strategy_id = $1 and d.at >= $4 and d.at < $5 and d.seq = 1
       and e.mode = $2 and e.version = $3 and e.execution_type <> 'exit'
     order by 1 limit ${slotsMax}`,
    [strategyId, mode, version, new Date(fromMs), new Date(toMs)],
  )
  return rows.map(({ at }) => at.getTime())
}

export const storeDrift = (db: Queryable, { strategyId, mode }: AccountKey, drift: Drift) =>
  query(db, 'update strategy_account set drift = $3 where strategy_id = $1 and mode = $2', [
    strategyId,
    mode,
    jsonText(drift),
  ])
