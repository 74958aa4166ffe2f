import type { Random } from '#kernel/id.ts'
import { uuidv7 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { fromStoredRun, type StoredRun, toStoredRun } from '#market/strategies/stored-run.ts'
import type { StrategyRun } from '#market/strategies/strategy-run.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'
import type { StrategyAccountRow, StrategyFillRow, StrategyMode } from '#store/tables/strategies.ts'

/** The statements by which runs and the watch read and change what strategies have. */

/** Up to where prices or fills have been applied; each mode has fields of its own. */
export type AccountCursor = JsonObject
export type StrategyAccount = Pick<
  StrategyAccountRow,
  'id' | 'strategy_id' | 'mode' | 'user_id' | 'version' | 'watch_at' | 'opened_at' | 'updated_at'
> & { run: StrategyRun; cursor: AccountCursor }

type AccountKey = Pick<StrategyAccountRow, 'strategy_id' | 'mode'>

export const accountOf = ({ state, cursor, ...row }: StrategyAccountRow): StrategyAccount => ({
  ...row,
  run: fromStoredRun(state as StoredRun),
  cursor: cursor as AccountCursor,
})

export async function findAccount(
  db: Queryable,
  { strategy_id, mode }: AccountKey,
): Promise<StrategyAccount | undefined> {
  const [row] = await query<StrategyAccountRow>(
    db,
    'select * from strategy_account where strategy_id = $1 and mode = $2',
    [strategy_id, mode],
  )
  return row && accountOf(row)
}

/** Locks an account until the end of the transaction. */
export async function lockAccount(
  tx: Tx,
  { strategy_id, mode }: AccountKey,
): Promise<StrategyAccount | undefined> {
  const [row] = await query<StrategyAccountRow>(
    tx,
    'select * from strategy_account where strategy_id = $1 and mode = $2 for no key update',
    [strategy_id, mode],
  )
  return row && accountOf(row)
}

type NewAccount = AccountKey & {
  user_id: string
  version: number
  run: StrategyRun
  cursor: AccountCursor
  at: Date
  random: Random
}

/** Opens an account unless the strategy has one of this mode, and locks it in either case. */
export async function openAccountRow(tx: Tx, given: NewAccount): Promise<StrategyAccount> {
  const { strategy_id, mode, user_id, version, run, cursor, at, random } = given
  await query(
    tx,
    `insert into strategy_account (id, strategy_id, mode, user_id, version, state, cursor, opened_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $8) on conflict (strategy_id, mode) do nothing`,
    [
      uuidv7(at, random),
      strategy_id,
      mode,
      user_id,
      version,
      jsonText(toStoredRun(run)),
      jsonText(cursor),
      at,
    ],
  )
  return (await lockAccount(tx, given))!
}

export type ChangedAccount = Pick<StrategyAccount, 'id' | 'version' | 'run' | 'cursor' | 'watch_at'>

/** Stores an account that the caller has locked. */
export const storeAccount = (tx: Tx, { id, version, run, cursor, watch_at }: ChangedAccount, at: Date) =>
  query(
    tx,
    `update strategy_account set version = $2, state = $3, cursor = $4, watch_at = $5, updated_at = $6 where id = $1`,
    [id, version, jsonText(toStoredRun(run)), jsonText(cursor), watch_at, at],
  )

/** Stores fills; one that is there already stays as it is. */
export const storeFills = (tx: Tx, fills: readonly StrategyFillRow[]) =>
  query(
    tx,
    `insert into strategy_fill select * from jsonb_populate_recordset(null::strategy_fill, $1::jsonb)
     on conflict do nothing`,
    [jsonText(fills.map((fill) => ({ ...fill, fill_id: String(fill.fill_id) })))],
  )

export const storeEquity = (
  tx: Tx,
  { strategy_id, mode }: { strategy_id: string; mode: StrategyMode },
  { usd, at }: { usd: string; at: Date },
) =>
  query(
    tx,
    `insert into strategy_equity (strategy_id, mode, at, equity_usd) values ($1, $2, $3, $4)
     on conflict (strategy_id, mode, at) do update set equity_usd = excluded.equity_usd`,
    [strategy_id, mode, at, usd],
  )

export type NewDecision = {
  execution_id: string
  seq: number
  strategy_id: string
  at: Date
  decision: string
  inputs_sha256: string
  inputs: JsonObject
}

/** Stores a decision. The commit of a step is fenced, so a number of a run that has a decision already is an error. */
export const storeDecision = (tx: Tx, decision: NewDecision) =>
  query(
    tx,
    'insert into strategy_decision select * from jsonb_populate_record(null::strategy_decision, $1)',
    [jsonText(decision)],
  )

/** How many fills a run has, and the sum of their realized profit; the sum is null without an exit. */
export type RunFills = { fills: number; realized: string | null }

export async function fillsOfRun(db: Queryable, executionId: string, strategyId: string): Promise<RunFills> {
  const [row] = await query<RunFills>(
    db,
    `select count(*)::integer as fills, trim_scale(sum(realized_pnl_usd))::text as realized from strategy_fill
     where strategy_id = $2 and execution_id = $1`,
    [executionId, strategyId],
  )
  return row ?? { fills: 0, realized: null }
}
