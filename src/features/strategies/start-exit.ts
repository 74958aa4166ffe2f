import type { Engine } from '#durable/engine.ts'
import { runKindName } from '#engines/strategy-slots/strategy-slots.ts'
import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { bodyHash, internalKey } from '#kernel/task/idempotency-key.ts'
import type { Tx } from '#kernel/task/task.ts'
import { assetsInUse } from '#market/strategies/paper-run.ts'
import { jsonText, query } from '#store/query.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'
import { findAccount, type StrategyAccount } from './account-store.ts'

/** Starts the run that closes what a strategy has open: after a guard, at the end of a day, or on request. */

export type StartExitDeps = {
  taskEngine: Pick<Engine, 'enqueue' | 'kindOf'>
  /** The clock of schedules. */
  clock: Clock
  random: Random
}
export type ExitScope = {
  strategyId: string
  /** Which account ends: a guard on paper closes nothing live. */
  mode: StrategyMode
}
/**
 * Returns the id of the run and its task. One that is under way is returned as well, and undefined if nothing is open and
 * nothing rests. The caller announces queued tasks after its commit.
 */
export type StartExit = (tx: Tx, scope: ExitScope, reason: string) => Promise<string | undefined>

export const createStartExit =
  (deps: StartExitDeps): StartExit =>
  async (tx, { strategyId, mode }, reason) => {
    // The row of the strategy numbers its runs, and lets one exit begin at a time.
    await query(tx, 'select id from strategy where id = $1 for no key update', [strategyId])
    const [running] = await query<{ id: string }>(
      tx,
      `select id from strategy_execution
       where strategy_id = $1 and mode = $2 and execution_type = 'exit' and status in ('pending', 'running')`,
      [strategyId, mode],
    )
    if (running) return running.id
    const account = await findAccount(tx, { strategy_id: strategyId, mode })
    const isOpen = account !== undefined && assetsInUse(account.run).length > 0
    return isOpen ? insertExit(deps, tx, { account, reason }) : undefined
  }

type Exit = { account: StrategyAccount; reason: string }

async function insertExit(
  { taskEngine, clock, random }: StartExitDeps,
  tx: Tx,
  { account, reason }: Exit,
): Promise<string> {
  const { strategy_id: strategyId, user_id: userId, version, mode } = account
  const now = clock.now()
  const id = uuidv7(now, random)
  // A version that only manual runs have used has no access of its own; the exit acts for who has started the last one.
  await query(
    tx,
    `with numbered as (
       update strategy set execution_count = execution_count + 1 where id = $2 returning execution_count
     )
     insert into strategy_execution
       (id, strategy_id, user_id, version, number, execution_type, mode, status, decision, authority, created_at)
     select $1, $2, $3, $4, execution_count, 'exit', $5, 'pending', $6, (
       select coalesce(v.authority, (
         select e.authority from strategy_execution e
         where e.strategy_id = $2 and e.authority is not null order by e.number desc limit 1))
       from strategy_version v where v.strategy_id = $2 and v.version = $4), $7 from numbered`,
    [id, strategyId, userId, version, mode, jsonText({ action: 'exit', reason }), now],
  )
  await enqueueExit(taskEngine, tx, { id, userId, strategyId, version })
  return id
}

type ExitTask = { id: string; userId: string; strategyId: string; version: number }

function enqueueExit(
  taskEngine: StartExitDeps['taskEngine'],
  tx: Tx,
  { id, userId, strategyId, version }: ExitTask,
): Promise<string> {
  const kind = taskEngine.kindOf(runKindName)
  if (!kind) throw new Error(`this instance has no task kind ${runKindName}`)
  const input = { schedule_id: strategyId, version, slot: null, priority: 0 }
  return taskEngine.enqueue(tx, {
    id,
    userId,
    kind,
    input,
    admission: { data: {}, first: Object.keys(kind.steps)[0]! },
    key: {
      key: internalKey('sched', `${strategyId} ${id}`),
      operation: `schedule:${kind.kind}`,
      hash: bodyHash(kind.kind, input),
    },
  })
}
