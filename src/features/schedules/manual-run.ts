import type { Engine } from '#durable/engine.ts'
import { tradePriority } from '#engines/strategy-slots/serve-slots.ts'
import { runKindName } from '#engines/strategy-slots/strategy-slots.ts'
import type { ActScope, Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { TaskBrief } from '#kernel/contract/task-response.ts'
import { uuidv7 } from '#kernel/id.ts'
import { bodyHash, internalKey } from '#kernel/task/idempotency-key.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'
import type { Queryable } from '#store/query.ts'
import { authorityFor, lockToBegin } from './activation.ts'
import type { ScheduleInputOf } from './contract.ts'
import { assertScopes, isLive, requireSchedule, type ScheduleDeps } from './schedule-deps.ts'
import type { UserFacts } from './setup-checklist.ts'
import * as store from './store.ts'
import { compiledOf } from './views.ts'

/** This module starts a run by hand, with the present version; the times of the schedule stay as they are. */

export type ManualRunDeps = ScheduleDeps & {
  taskEngine: Pick<Engine, 'enqueue' | 'kindOf' | 'announceQueued'>
  taskBrief: (db: Queryable, taskId: string) => Promise<TaskBrief>
}
type Starting = { facts: UserFacts; caller: Caller; act: ActScope }

export async function runNow(
  deps: ManualRunDeps,
  { schedule_id: scheduleId }: ScheduleInputOf<'run'>,
  { facts, caller, act: { tx, afterCommit } }: Starting,
): Promise<TaskBrief> {
  const { userId } = caller
  await lockToBegin(deps, tx, caller)
  const row = await requireSchedule(tx, userId, scheduleId)
  if (row.status === 'disabled')
    throw new Fault('conflict', 'The schedule is disabled: `schedules_update` makes a draft of it', {
      extras: { status: row.status },
    })
  const [running] = await store.openRuns(tx, [scheduleId], { hasStarted: true })
  if (running !== undefined)
    throw new Fault('conflict', 'A run of the schedule is under way', { extras: { execution_id: running } })
  // What a live strategy needs is checked by its activation.
  if (isLive(row) && row.status !== 'active')
    throw new Fault(
      'conflict',
      'A live strategy runs only while it is active: activate it, or set its `mode` to `paper`',
      {
        extras: { status: row.status },
      },
    )
  assertScopes(deps, { ...row, compiled: compiledOf(row) }, caller)
  if (row.type === 'prompt') assertCredits(deps.creditsPerRun(row.agent as Agent), facts)
  // The run acts for the caller who starts it, who may be allowed less than the one who has activated the schedule.
  const authority = await authorityFor(deps, { row, caller, tx })
  const id = uuidv7(deps.clock.now(), deps.random)
  await store.insertManualRun(tx, { id, row, authority, at: deps.clock.now() })
  await enqueueRun(deps, tx, { id, row })
  afterCommit(deps.taskEngine.announceQueued)
  return { ...(await deps.taskBrief(tx, id)), idempotency_key: null }
}

function assertCredits(required: number, { credits: available }: UserFacts): void {
  if (available >= required) return
  throw new Fault(
    'insufficient_credits',
    `A run takes ${required} credits and ${available} are available: buy a pack with \`credits_recharge\`, or a plan with \`subscriptions_checkout\``,
    { extras: { required, available, missing: required - available, packs_path: '/credits/packs' } },
  )
}

function enqueueRun(
  { taskEngine }: ManualRunDeps,
  tx: ActScope['tx'],
  { id, row }: { id: string; row: store.ScheduleRow },
): Promise<string> {
  const kind = taskEngine.kindOf(runKindName)
  if (!kind) throw new Error(`this instance has no task kind ${runKindName}`)
  const input = {
    schedule_id: row.id,
    version: row.version,
    slot: null,
    ...(row.type !== 'prompt' && { priority: tradePriority }),
  }
  return taskEngine.enqueue(tx, {
    id,
    userId: row.user_id,
    kind,
    input,
    admission: { data: {}, first: Object.keys(kind.steps)[0]! },
    key: {
      key: internalKey('sched', `${row.id} ${id}`),
      operation: `schedule:${kind.kind}`,
      hash: bodyHash(kind.kind, input),
    },
  })
}
