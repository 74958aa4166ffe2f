/** Strategies on engines of a test: their rows, and a calendar that is a grid of times. */
import {
  createStrategySlots,
  runKindName,
  type StrategySlots,
} from '#engines/strategy-slots/strategy-slots.ts'
import { type Clock, systemClock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { TaskKind, TaskView } from '#kernel/task/task.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { Database } from '#store/database.ts'
import { jsonText, query } from '#store/query.ts'
import type { StrategyVersionRow } from '#store/tables/strategies.ts'
import { type EngineFixture, executed, type Instance, newUser } from './engine-fixture.ts'

export type Grid = { everyMs: number; phaseMs: number }
/** A calendar that is no grid cannot be read. */
export function gridSlot(calendar: object, after: Date): Date {
  if (!isRecord(calendar) || typeof calendar.everyMs !== 'number')
    throw new Error('the calendar is not readable')
  const { everyMs, phaseMs } = calendar as Grid
  return new Date(phaseMs + (Math.floor((after.getTime() - phaseMs) / everyMs) + 1) * everyMs)
}

type GivenVersion = Partial<Pick<StrategyVersionRow, 'type' | 'max_runs' | 'on_missed' | 'catch_up_seconds'>>
export type GivenStrategy = { userId?: string; grid: object; nextAt: Date | null } & GivenVersion

/** Returns the ids in the order of what was given. */
export async function insertStrategies(
  { admin }: { admin: Pick<EngineFixture['admin'], 'pool'> },
  given: readonly GivenStrategy[],
): Promise<string[]> {
  const rows = given.map(({ userId = newUser(), grid, nextAt, ...version }) => ({
    id: newUser(),
    user_id: userId,
    next_at: nextAt,
    status: nextAt ? 'active' : 'draft',
    version: versionRow({ calendar: grid, ...version }),
  }))
  await query(
    admin.pool,
    `insert into strategy (id, user_id, title, version, status, notify, next_at, tz_version, created_at, updated_at)
     select (r ->> 'id')::uuid, (r ->> 'user_id')::uuid, 'test', 1, r ->> 'status', 'none', (r ->> 'next_at')::timestamptz,
       '2026a', now(), now() from jsonb_array_elements($1::jsonb) r`,
    [jsonText(rows)],
  )
  await insertVersions(
    { admin },
    rows.map(({ id, version }) => ({ ...version, strategy_id: id })),
  )
  return rows.map(({ id }) => id)
}

export const versionRow = (fields: Partial<StrategyVersionRow>): Omit<StrategyVersionRow, 'strategy_id'> => ({
  version: 1,
  type: 'dca',
  query: 'test',
  agent: 'test',
  mode: 'paper',
  calendar: null,
  max_runs: null,
  on_missed: 'run_latest',
  catch_up_seconds: 600,
  config: null,
  guards: null,
  tools_allowed: null,
  budget_usd: null,
  paper_balance_usd: '1000',
  compiled: null,
  authority: null,
  approval_id: null,
  created_at: new Date(),
  ...fields,
})

export const insertVersions = (
  { admin: { pool: db } }: { admin: { pool: Parameters<typeof query>[0] } },
  rows: readonly StrategyVersionRow[],
) =>
  query(
    db,
    `insert into strategy_version select * from jsonb_populate_recordset(null::strategy_version, $1::jsonb)`,
    [jsonText(rows)],
  )

/** Ends each run with its record, after `onRun`. */
export const runKindOf = (onRun: (task: TaskView) => Promise<void> = async () => {}): TaskKind => ({
  kind: runKindName,
  version: 1,
  priority: 1,
  steps: {
    only: async (task, { now }) => {
      await onRun(task)
      return {
        ...executed,
        writes: async (tx) => {
          await query(
            tx,
            `update strategy_execution set status = 'completed', outcome = 'executed', started_at = $2, ended_at = $2
             where id = $1`,
            [task.id, now],
          )
        },
      }
    },
  },
})

export const slotsOf = (
  {
    taskEngine,
    database,
  }: Pick<Instance, 'taskEngine'> & { database: Pick<Database, 'pool' | 'transaction'> },
  { clock = systemClock, tzVersion = '2026a' }: { clock?: Clock; tzVersion?: string } = {},
): StrategySlots =>
  createStrategySlots({
    transactions: { pool: database.pool, run: database.transaction },
    taskEngine,
    nextSlot: gridSlot,
    clock,
    taskClock: clock,
    skipEvents: () => [],
    random,
    tzVersion,
  })
