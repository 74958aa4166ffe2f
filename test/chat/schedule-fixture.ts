/** Schedules as an activation leaves them, and runs as a slot makes them. */
import { authorityOf } from '#engines/stored-callers/stored-caller.ts'
import { systemClock } from '#kernel/clock.ts'
import { scopes } from '#kernel/contract/caller.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { type Queryable, query } from '#store/query.ts'
import type { StrategyExecutionRow } from '#store/tables/strategies.ts'
import { type Agent, eventually } from '../harness/gateway.ts'
import type { Instance } from '../harness/instance.ts'

type Fields = {
  query: string
  /** What the query orders. */
  operations?: string[]
  notify?: 'all' | 'failures' | 'none'
  guards?: object
  authority: object
  threadId?: string
  maxRuns?: number
}
export type Schedule = { id: string; userId: string }

const newId = () => uuidv7(systemClock.now(), systemRandom)

/** The authority of an agent that nobody has linked, with every scope. */
export const authorityFields = ({ agentId }: Pick<Agent, 'agentId'>) => ({
  agentId,
  scheme: 'keypair',
  scopes: [...scopes],
})

/** An active schedule whose next slot is a day away. */
export async function insertSchedule(
  db: Queryable,
  userId: string,
  { query: text, authority, ...fields }: Fields,
): Promise<string> {
  const id = newId()
  await query(
    db,
    `insert into strategy (id, user_id, title, version, status, notify, thread_id, next_at, activated_at, created_at, updated_at)
     values ($1, $2, 'A schedule', 1, 'active', $3, $4, now() + interval '1 day', now(), now(), now())`,
    [id, userId, fields.notify ?? 'all', fields.threadId ?? null],
  )
  await query(
    db,
    `insert into strategy_version (strategy_id, version, type, query, agent, mode, calendar, on_missed, catch_up_seconds,
       max_runs, guards, paper_balance_usd, compiled, authority, created_at)
     values ($1, 1, 'prompt', $2, 'ProAgent', 'live', $3, 'run_latest', 600, $4, $5, 1000, $6, $7, now())`,
    [
      id,
      text,
      JSON.stringify({
        type: 'interval',
        every_seconds: 3_600,
        timezone: 'UTC',
        starts_at: '2026-01-01T00:00:00.000Z',
      }),
      fields.maxRuns ?? null,
      fields.guards && JSON.stringify(fields.guards),
      JSON.stringify({ operations: fields.operations ?? [], notes: [] }),
      JSON.stringify(authority),
    ],
  )
  return id
}

export async function addSchedule(
  { db }: Pick<Instance, 'db'>,
  { agentId }: Pick<Agent, 'agentId'>,
  fields: Omit<Fields, 'authority'>,
): Promise<Schedule> {
  const [user] = await query<{ id: string }>(db, 'select id from app_user where agent_id = $1', [agentId])
  const { id: userId } = user!
  const caller = { userId, agentId, scheme: 'keypair' as const, scopes: new Set(scopes) }
  const authority = await authorityOf(db, caller)
  return { id: await insertSchedule(db, userId, { ...fields, authority }), userId }
}

/** Enqueues a run of the schedule for this moment. */
export async function startRun(
  { transactions, taskEngine }: Pick<Instance, 'transactions' | 'taskEngine'>,
  schedule: Schedule,
): Promise<string> {
  const id = newId()
  const kind = taskEngine.kindOf('schedule_run')!
  await transactions.run(async (tx) => {
    await query(
      tx,
      `with numbered as (update strategy set execution_count = execution_count + 1
         where id = $2 returning execution_count, version)
       insert into strategy_execution (id, strategy_id, user_id, version, number, execution_type, mode, slot, status, created_at)
       select $1, $2, $3, version, execution_count, 'scheduled', 'live', clock_timestamp(), 'pending', clock_timestamp()
       from numbered`,
      [id, schedule.id, schedule.userId],
    )
    await taskEngine.enqueue(tx, {
      id,
      userId: schedule.userId,
      kind,
      input: { schedule_id: schedule.id, version: 1 },
      admission: { data: {}, first: 'check' },
    })
  })
  taskEngine.announceQueued()
  return id
}

export const endOfRun = (
  { db }: Pick<Instance, 'db'>,
  id: string,
  msMax?: number,
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

export const runToEnd = async (
  instance: Pick<Instance, 'db' | 'transactions' | 'taskEngine'>,
  schedule: Schedule,
): Promise<StrategyExecutionRow> => endOfRun(instance, await startRun(instance, schedule))
