import type { ActScope, Caller } from '#kernel/contract/caller.ts'
import { exactlyOneOf, Fault } from '#kernel/contract/fault.ts'
import type { ScheduleInputOf } from './contract.ts'
import { statusReason } from './run-events.ts'
import { requireSchedule, type ScheduleDeps, viewOf } from './schedule-deps.ts'
import type { ScheduleView } from './schedule-schemas.ts'
import type { UserFacts } from './setup-checklist.ts'
import * as store from './store.ts'
import { releaseAssets } from './strategy-assets.ts'

/** This module pauses and disables schedules. */

type Pausing = { facts: UserFacts; caller: Caller; act: ActScope }

export async function pause(
  deps: ScheduleDeps,
  { schedule_id: id }: ScheduleInputOf<'pause'>,
  { facts, caller: { userId }, act }: Pausing,
): Promise<ScheduleView> {
  await store.lockRunsAndSchedules(act.tx, userId)
  const row = await requireSchedule(act.tx, userId, id)
  if (row.status === 'paused') return viewOf(deps, row, facts)
  if (row.status !== 'active')
    throw new Fault('conflict', `The schedule is ${row.status}, so it does not run`, {
      extras: { status: row.status },
    })
  await stop(deps, { ids: [id], status: 'paused', userId, act })
  await releaseAssets(act.tx, [id])
  return viewOf(deps, await requireSchedule(act.tx, userId, id), facts)
}

type Stop = {
  ids: readonly string[]
  status: 'paused' | 'disabled'
  userId: string
  act: ActScope
  cancelsRunning?: boolean
  /** Schedules that were stopped earlier, whose runs are cancelled as those of the others. */
  stoppedBefore?: readonly string[]
}

const stopTexts = { paused: 'Paused by its user', disabled: 'Disabled by its user' } as const

/** Stops schedules: waiting runs are cancelled in the same commit, so no run starts after that commit. */
async function stop(
  { slots, tasks }: ScheduleDeps,
  { ids, status, userId, act, cancelsRunning = false, stoppedBefore = [] }: Stop,
): Promise<void> {
  for (const id of ids)
    await slots.disarm(act.tx, id, {
      status,
      reason: statusReason({ reason: 'user', text: stopTexts[status] }),
    })
  const runs = await store.openRuns(act.tx, [...ids, ...stoppedBefore], { hasStarted: cancelsRunning })
  await tasks.cancelNotSent(userId, runs, act)
}

export async function disable(
  deps: ScheduleDeps,
  input: ScheduleInputOf<'disable'>,
  { userId }: Caller,
  act: ActScope,
) {
  const wanted = idsIn(input)
  const all = await store.lockRunsAndSchedules(act.tx, userId)
  const statuses = new Map(all.map(({ id, status }) => [id, status]))
  const hasEnded = (id: string) => statuses.get(id) === 'disabled' || statuses.get(id) === 'completed'
  const ids = wanted ?? all.map(({ id }) => id)
  const known = ids.filter((id) => statuses.has(id))
  const disabled = known.filter((id) => !hasEnded(id))
  const isFlattened = input.positions === 'flatten'
  // A run that has not decided yet would open a position after everything was closed.
  const cancelsRunning = input.cancel_running === true || isFlattened
  await stop(deps, {
    ids: disabled,
    status: 'disabled',
    userId,
    act,
    cancelsRunning,
    // The last run of a schedule that has ended before may still be under way.
    stoppedBefore: isFlattened ? known.filter(hasEnded) : [],
  })
  const flattened = isFlattened ? await flatten(deps, known, act) : []
  await releaseAssets(act.tx, known)
  return {
    disabled,
    already: wanted ? known.filter(hasEnded) : [],
    not_found: ids.filter((id) => !statuses.has(id)),
    flatten_task_ids: flattened,
  }
}

/** Begins to close what strategies have open, also of those that were disabled before. */
async function flatten(
  { strategies }: ScheduleDeps,
  ids: readonly string[],
  { tx, afterCommit }: ActScope,
): Promise<string[]> {
  if (!strategies) return []
  const tasks: string[] = []
  for (const strategyId of ids)
    for (const mode of ['live', 'paper'] as const) {
      const task = await strategies.startExit(tx, { strategyId, mode }, 'disabled')
      if (task !== undefined) tasks.push(task)
    }
  if (tasks.length > 0) afterCommit(() => strategies.announceQueued())
  return tasks
}

/** Returns the schedule ids that a request names, each once; undefined stands for all schedules. */
function idsIn({ schedule_ids, schedule_id, all }: ScheduleInputOf<'disable'>): string[] | undefined {
  const given = [schedule_ids !== undefined, schedule_id !== undefined, all === true].filter(Boolean)
  if (given.length !== 1) throw exactlyOneOf('schedule_ids', 'all', { hasBoth: given.length > 1 })
  const ids = schedule_ids ?? (schedule_id === undefined ? undefined : [schedule_id])
  return ids && [...new Set(ids.map((id) => id.toLowerCase()))]
}
