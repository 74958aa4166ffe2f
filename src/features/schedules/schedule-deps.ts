import type { TaskQueries } from '#durable/task/task-queries.ts'
import type { StrategySlots } from '#engines/strategy-slots/strategy-slots.ts'
import type { Clock } from '#kernel/clock.ts'
import { assertScope } from '#kernel/contract/assert-scope.ts'
import type { Caller, Scope } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { ActRequests } from '#kernel/task/act-approval-request.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'
import type { Queryable } from '#store/query.ts'
import type { StrategyRow } from '#store/tables/strategies.ts'
import type { ScheduleView, SetupItemView } from './schedule-schemas.ts'
import { setupItems, type UserFacts } from './setup-checklist.ts'
import * as store from './store.ts'
import type { Compiled, Ordered } from './strategy-orders.ts'
import type { StrategyPort } from './strategy-port.ts'
import type { TermsDeps } from './strategy-terms.ts'
import { calendarOf, compiledOf, guardsOf, scheduleView } from './views.ts'

/** This module has what every change of schedules needs: its dependencies, and the checks of a schedule and a caller. */

export type ScheduleDeps = {
  db: Queryable
  clock: Clock
  random: Random
  factsOf: (userId: string) => Promise<UserFacts>
  creditsPerRun: (agent: Agent) => number
  /** How strategies are checked and end; undefined where no venue is configured. */
  strategies: StrategyPort | undefined
  assetNames: TermsDeps['assetNames']
  /** Returns the operations that a run may start by itself because its query orders them. */
  orderedBy: (userId: string, query: string) => Promise<Ordered>
  /** Throws if the user has no chat thread of this id. */
  assertThread: (userId: string, threadId: string) => Promise<void>
  /** Returns the scope that a token needs for an operation; undefined if the operation needs none. */
  scopeOf: (operation: string) => Scope | undefined
  /** Returns the stored caller in whose name the runs of a schedule act, without a credential. */
  authorityOf: (db: Queryable, caller: Caller) => Promise<object>
  /** Locks the access of a caller until the end of the transaction; returns false if the access has ended already. */
  holdAccess: (tx: Tx, caller: Caller) => Promise<boolean>
  acts: ActRequests
  /** The clock for approvals; unlike the clock of schedules, the local world does not advance it. */
  taskClock: Clock
  tasks: Pick<TaskQueries, 'cancelNotSent'>
  slots: Pick<StrategySlots, 'settle' | 'arm' | 'disarm' | 'announce'>
}

type Checked = Pick<store.ScheduleRow, 'type' | 'mode'>

/** Returns the facts about a user, with the positions of the account where a live strategy is among the schedules. */
export async function factsFor(
  { factsOf, strategies }: Pick<ScheduleDeps, 'factsOf' | 'strategies'>,
  userId: string,
  schedules: readonly Checked[],
): Promise<UserFacts> {
  const isAsked = schedules.some(({ type, mode }) => type !== 'prompt' && mode === 'live')
  const [facts, positions] = await Promise.all([
    factsOf(userId),
    isAsked ? strategies?.positionsOf(userId) : undefined,
  ])
  return isAsked ? { ...facts, positions: positions ?? null } : facts
}

export const noSchedule = () => notFound('schedule', 'schedules_all')

export async function requireSchedule(db: Queryable, userId: string, id: string): Promise<store.ScheduleRow> {
  const row = await store.findSchedule(db, userId, id)
  if (!row) throw noSchedule()
  return row
}

export const viewOf = (
  { clock, taskClock, creditsPerRun }: ScheduleDeps,
  row: store.ScheduleRow,
  facts: UserFacts,
): ScheduleView => scheduleView(row, { facts, creditsPerRun, now: clock.now(), taskNow: taskClock.now() })

export function assertVersion({ version }: Pick<StrategyRow, 'version'>, expected: number | undefined): void {
  if (expected === undefined || expected === version) return
  throw new Fault('conflict', `The schedule has version ${version} by now: read it again`, {
    extras: { version },
  })
}

type Ordering = Pick<store.ScheduleRow, 'mode'> & { compiled: Compiled }

/** Throws if a run orders an operation that the caller could not start, because no run may start it then. */
export function assertScopes(
  { scopeOf }: Pick<ScheduleDeps, 'scopeOf'>,
  { compiled, mode }: Ordering,
  caller: Caller,
): void {
  // What happens on paper needs no scope.
  const operations = mode === 'paper' ? [] : compiled.operations
  for (const operation of operations) {
    const scope = scopeOf(operation)
    if (scope) assertScope(caller, scope)
  }
}

/** Returns what a schedule lacks before it can run. */
export const missingOf = (
  { clock, taskClock, creditsPerRun }: ScheduleDeps,
  row: store.ScheduleRow,
  facts: UserFacts,
): SetupItemView[] =>
  setupItems({
    ...row,
    calendar: calendarOf(row),
    compiled: compiledOf(row),
    guards: guardsOf(row),
    creditsPerRun: creditsPerRun(row.agent as Agent),
    facts,
    now: clock.now(),
    taskNow: taskClock.now(),
  }).filter(({ required, done }) => required && !done)

/** Whether a schedule is a strategy that trades. */
export const isLive = ({ type, mode }: Checked): boolean => type !== 'prompt' && mode === 'live'
