/** Strategies as an activation leaves them, their runs as a slot makes them, and what these have stored. */
import { authorityOf } from '#engines/stored-callers/stored-caller.ts'
import { systemClock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'
import type {
  StrategyDecisionRow,
  StrategyExecutionRow,
  StrategyFillRow,
  StrategyVersionRow,
} from '#store/tables/strategies.ts'
import { eventually } from '../harness/gateway.ts'
import type { Instance } from '../harness/instance.ts'

type Fields = Pick<StrategyVersionRow, 'type'> & {
  config: object
  guards?: object
  mode?: StrategyVersionRow['mode']
  timezone?: string
  budgetUsd?: string
  paperUsd?: string
}
type Owner = { id: string; caller: Caller }
export type Strategy = { id: string; userId: string; mode: StrategyVersionRow['mode'] }

export const newId = () => uuidv7(systemClock.now(), systemRandom)

/** An active strategy whose next slot is a day away. */
export async function addStrategy(db: Queryable, owner: Owner, fields: Fields): Promise<Strategy> {
  const strategy = { id: newId(), userId: owner.id, mode: fields.mode ?? 'paper' }
  await addStrategyRow(db, { ...fields, ...strategy, authority: await authorityOf(db, owner.caller) })
  return strategy
}

type StrategyFields = Fields & { id: string; authority: object }

export async function addStrategyRow(
  db: Queryable,
  fields: StrategyFields & { userId: string },
): Promise<void> {
  await query(
    db,
    `insert into strategy (id, user_id, title, version, status, notify, next_at, activated_at, created_at, updated_at)
     values ($1, $2, 'A strategy', 1, 'active', 'all', now() + interval '1 day', now(), now(), now())`,
    [fields.id, fields.userId],
  )
  await addVersionRow(db, fields, 1)
}

/** Makes another version the present one. */
export async function addVersion(
  db: Queryable,
  { id }: Strategy,
  owner: Owner,
  fields: Fields,
): Promise<void> {
  const [row] = await query<{ version: number }>(
    db,
    'update strategy set version = version + 1 where id = $1 returning version',
    [id],
  )
  const authority = await authorityOf(db, owner.caller)
  await addVersionRow(db, { ...fields, id, authority }, row!.version)
}

async function addVersionRow(
  db: Queryable,
  { id, authority, ...fields }: StrategyFields,
  version: number,
): Promise<void> {
  const calendar = {
    type: 'interval',
    every_seconds: 3_600,
    timezone: fields.timezone ?? 'UTC',
    starts_at: '2026-01-01T00:00:00.000Z',
  }
  await query(
    db,
    `insert into strategy_version (strategy_id, version, type, query, agent, mode, calendar, on_missed, catch_up_seconds,
       config, guards, budget_usd, paper_balance_usd, compiled, authority, created_at)
     values ($1, $2, $3, 'A strategy', 'ProAgent', $4, $5, 'run_latest', 600, $6, $7, $8, $9, $10, $11, now())`,
    [
      id,
      version,
      fields.type,
      fields.mode ?? 'paper',
      jsonText(calendar),
      jsonText(fields.config),
      jsonText(fields.guards ?? {}),
      fields.budgetUsd ?? null,
      fields.paperUsd ?? '1000',
      jsonText({ operations: [], notes: [] }),
      jsonText(authority),
    ],
  )
}

type Runs = Pick<Instance, 'db' | 'transactions' | 'taskEngine'>

/** Enqueues a run of the present version for this moment. */
export async function startStrategyRun(
  { transactions, taskEngine }: Runs,
  { id: strategyId, userId, mode }: Strategy,
): Promise<string> {
  const id = newId()
  await transactions.run(async (tx) => {
    await query(
      tx,
      `with numbered as (update strategy set execution_count = execution_count + 1
         where id = $2 returning execution_count, version)
       insert into strategy_execution (id, strategy_id, user_id, version, number, execution_type, mode, slot, status, created_at)
       select $1, $2, $3, version, execution_count, 'scheduled', $4, clock_timestamp(), 'pending', clock_timestamp()
       from numbered`,
      [id, strategyId, userId, mode],
    )
    await taskEngine.enqueue(tx, {
      id,
      userId,
      kind: taskEngine.kindOf('schedule_run')!,
      input: { schedule_id: strategyId, slot: null },
      admission: { data: {}, first: 'check' },
    })
  })
  taskEngine.announceQueued()
  return id
}

export const endOfRun = (
  { db }: Pick<Runs, 'db'>,
  id: string,
  msMax = 60_000,
): Promise<StrategyExecutionRow> =>
  eventually(
    async () => {
      const [row] = await query<StrategyExecutionRow>(db, 'select * from strategy_execution where id = $1', [
        id,
      ])
      return row?.ended_at ? row : undefined
    },
    'the end of the run',
    msMax,
  )

export const runStrategy = async (instance: Runs, strategy: Strategy): Promise<StrategyExecutionRow> =>
  endOfRun(instance, await startStrategyRun(instance, strategy))

export const decisionsOf = (db: Queryable, { id }: Strategy): Promise<StrategyDecisionRow[]> =>
  query(db, 'select * from strategy_decision where strategy_id = $1 order by at, seq', [id])

export const fillsOf = (db: Queryable, { id }: Strategy): Promise<StrategyFillRow[]> =>
  query(
    db,
    `select strategy_id, mode, fill_id, execution_id, asset, is_buy, size::text, price::text, fee_usd::text,
       realized_pnl_usd::text, reason, is_exit, at from strategy_fill where strategy_id = $1 order by fill_id`,
    [id],
  )
