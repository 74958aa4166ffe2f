import type { TaskQueries } from '#durable/task/task-queries.ts'
import { assertUncontested } from '#engines/agent-links/owners.ts'
import type { StoredCaller } from '#engines/stored-callers/stored-caller.ts'
import type { StrategySlots } from '#engines/strategy-slots/strategy-slots.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { assertScope } from '#kernel/contract/assert-scope.ts'
import { type ActScope, type Caller, type Scope, scopes } from '#kernel/contract/caller.ts'
import { exactlyOneOf, Fault, notFound } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import { toMicros } from '#kernel/money/money.ts'
import type { ActRequests, RequestedAct } from '#kernel/task/act-approval-request.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'
import { type Owner, personOf } from '#store/person-of-user.ts'
import type { Queryable } from '#store/query.ts'
import type { StrategyRow } from '#store/tables/strategies.ts'
import type { ScheduleInputOf } from './contract.ts'
import { statusReason } from './run-events.ts'
import { activeMax, type ScheduleView, type SetupItemView } from './schedule-schemas.ts'
import { type Compiled, type Ordered, setupItems, type UserFacts } from './setup-checklist.ts'
import {
  type ApprovedActivation,
  approvalRequest,
  approvedBefore,
  approvedMs,
  covers,
  maxToApprove,
  termsHash,
  versionHash,
} from './standing-approval.ts'
import * as store from './store.ts'
import { calendarOf, compiledOf, scheduleView } from './views.ts'

/** This module activates, pauses, disables and ends schedules. */

export type ScheduleDeps = {
  db: Queryable
  clock: Clock
  random: Random
  factsOf: (userId: string) => Promise<UserFacts>
  creditsPerRun: (agent: Agent) => number
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

export const noSchedule = () => notFound('schedule', 'schedules_all')

export async function requireSchedule(db: Queryable, userId: string, id: string): Promise<store.ScheduleRow> {
  const row = await store.findSchedule(db, userId, id)
  if (!row) throw noSchedule()
  return row
}

export const viewOf = (
  { clock, creditsPerRun }: ScheduleDeps,
  row: store.ScheduleRow,
  facts: UserFacts,
): ScheduleView => scheduleView(row, { facts, creditsPerRun, now: clock.now() })

export function assertVersion({ version }: Pick<StrategyRow, 'version'>, expected: number | undefined): void {
  if (expected === undefined || expected === version) return
  throw new Fault('conflict', `The schedule has version ${version} by now: read it again`, {
    extras: { version },
  })
}

/** Throws if the query orders an operation that the caller could not start, because no run may start it then. */
export function assertScopes({ scopeOf }: ScheduleDeps, { operations }: Compiled, caller: Caller): void {
  for (const operation of operations) {
    const scope = scopeOf(operation)
    if (scope) assertScope(caller, scope)
  }
}

const missingOf = ({ clock, creditsPerRun }: ScheduleDeps, row: store.ScheduleRow, facts: UserFacts) =>
  setupItems({
    ...row,
    calendar: calendarOf(row),
    compiled: compiledOf(row),
    creditsPerRun: creditsPerRun(row.agent as Agent),
    facts,
    now: clock.now(),
  }).filter(({ required, done }) => required && !done)

type Beginning = { row: store.ScheduleRow; authority: object; act: ActScope }

/** Activates a schedule; the caller of this function has locked the schedules of the user. */
async function begin(deps: ScheduleDeps, { row, authority, act }: Beginning): Promise<void> {
  const { tx, afterCommit } = act
  const { active } = await store.countSchedules(tx, row.user_id)
  if (active >= activeMax)
    throw new Fault(
      'limit_reached',
      `A user has at most ${activeMax} active schedules: pause or disable another one`,
      { extras: { max: activeMax } },
    )
  await store.storeAuthority(tx, row, authority)
  if (!(await deps.slots.arm(tx, row.id))) throw new Error(`schedule ${row.id} has no time to come`)
  await store.updateSchedule(tx, row.id, { activated_at: deps.clock.now() })
  afterCommit(deps.slots.announce)
}

const howTexts = (missing: readonly SetupItemView[]) => missing.map(({ how }) => how).join('; ')

type MaybeBeginning = { id: string; facts: UserFacts; caller: Caller; act: ActScope }

/** Activates a schedule if it lacks nothing; otherwise its status stays, and its checklist says what it lacks. */
export async function beginIfComplete(
  deps: ScheduleDeps,
  { id, facts, caller, act }: MaybeBeginning,
): Promise<void> {
  const row = await requireSchedule(act.tx, caller.userId, id)
  const missing = missingOf(deps, row, facts)
  const authority = await authorityFor(deps, { row, caller, tx: act.tx })
  const isReserved = maxUnapproved({ row, facts, authority }) !== undefined
  if (missing.length === 0 && !isReserved) return begin(deps, { row, authority, act })
  const how =
    missing.length > 0
      ? howTexts(missing)
      : 'A person approves what its runs start: `schedules_activate` asks for that'
  await store.updateSchedule(act.tx, id, {
    status_reason: statusReason({ reason: 'incomplete', text: `Not activated. ${how}` }),
  })
}

type Authorized = { row: store.ScheduleRow; caller: Caller; tx: Tx }
/**
 * Returns the authority of a new activation or run: the scopes of the caller that the version needs, and the approval
 * that a person has given for just this. While the link to the person is contested, no approval counts.
 */
export async function authorityFor(deps: ScheduleDeps, { row, caller, tx }: Authorized) {
  const needed = neededScopes(deps, compiledOf(row))
  const allowed = scopes.filter((scope) => needed.has(scope) && caller.scopes.has(scope))
  const access = await deps.authorityOf(tx, { ...caller, scopes: new Set(allowed) })
  const owner = await personOf(tx, caller.userId)
  const given = owner?.contestedAt ? { ...row, authority: null } : row
  return { ...access, ...approvedBefore(given, { access, now: deps.taskClock.now() }) }
}

/** Returns the scopes that a run needs: it chats, reads, and starts what its query orders. */
const neededScopes = ({ scopeOf }: ScheduleDeps, { operations }: Compiled): ReadonlySet<Scope> =>
  new Set(['chat', 'read', ...operations.flatMap((operation) => scopeOf(operation) ?? [])])

type Reserved = { row: store.ScheduleRow; facts: UserFacts; authority: { approvedMicros?: string } }
/**
 * Returns the maximum value of one order if a person has to approve orders of that value first; undefined otherwise.
 */
function maxUnapproved({ row, facts, authority }: Reserved): string | undefined {
  const maxUsd = maxToApprove(compiledOf(row), facts)
  return maxUsd === undefined || covers(authority, maxUsd) ? undefined : maxUsd
}

const setupIncomplete = (missing: readonly SetupItemView[]) =>
  new Fault('setup_incomplete', `Not ready to run. ${howTexts(missing)}`, {
    extras: { missing: missing.map(({ key }) => key) },
  })

/**
 * Locks the caller's access and schedules; throws if the access has ended. An end of the access waits for this
 * transaction, and then also stops what the transaction has begun.
 */
export async function lockToBegin({ holdAccess }: ScheduleDeps, tx: Tx, caller: Caller): Promise<void> {
  if (!(await holdAccess(tx, caller)))
    throw new Fault('invalid_token', 'The token was revoked meanwhile: obtain another one')
  await store.lockSchedules(tx, caller.userId)
}

export async function activate(
  deps: ScheduleDeps,
  { schedule_id: id, expected_version }: ScheduleInputOf<'activate'>,
  { facts, caller, act }: Omit<MaybeBeginning, 'id'>,
): Promise<ScheduleView | RequestedAct> {
  const { userId } = caller
  await lockToBegin(deps, act.tx, caller)
  const row = await requireSchedule(act.tx, userId, id)
  assertVersion(row, expected_version)
  if (row.status === 'active') return viewOf(deps, row, facts)
  assertScopes(deps, compiledOf(row), caller)
  assertComplete(deps, row, facts)
  const authority = await authorityFor(deps, { row, caller, tx: act.tx })
  const maxUsd = maxUnapproved({ row, facts, authority })
  const view = viewOf(deps, row, facts)
  const requested =
    maxUsd === undefined
      ? undefined
      : await deps.acts
          .requestAct(act, approvalRequest({ row, view, maxUsd, authority }), caller)
          .catch(noPerson)
  if (requested) return requested
  await begin(deps, { row, authority, act })
  return viewOf(deps, await requireSchedule(act.tx, userId, id), facts)
}

/**
 * Ignores that there is no person who could approve: runs then start the orders that need no approval, and recommend
 * the others.
 */
function noPerson(error: unknown): undefined {
  if (!(error instanceof Fault) || error.code !== 'step_up_required') throw error
}

function assertComplete(deps: ScheduleDeps, row: store.ScheduleRow, facts: UserFacts): void {
  if (row.status === 'disabled' || row.status === 'completed')
    throw new Fault('conflict', `The schedule is ${row.status}: \`schedules_update\` makes a draft of it`, {
      extras: { status: row.status },
    })
  const missing = missingOf(deps, row, facts)
  if (missing.length > 0) throw setupIncomplete(missing)
}

type ApprovedBeginning = { facts: UserFacts; userId: string; act: ActScope }

/** Activates the approved version of a schedule; throws if the schedule has changed since the approval. */
export async function activateApproved(
  deps: ScheduleDeps,
  { schedule_id: id, version_sha256, max_usd, authority }: ApprovedActivation,
  { facts, userId, act }: ApprovedBeginning,
): Promise<ScheduleView> {
  const owner = await personOf(act.tx, userId, { lock: true })
  assertUncontested(owner?.contestedAt ?? null)
  assertSameLink(owner, authority)
  await store.lockSchedules(act.tx, userId)
  const row = await requireSchedule(act.tx, userId, id)
  if (versionHash(row) !== version_sha256)
    throw new Fault('conflict', 'The schedule was changed since: activate it again', {
      extras: { version: row.version },
    })
  if (row.status === 'active') return viewOf(deps, row, facts)
  assertComplete(deps, row, facts)
  const approved = {
    approvedMicros: String(toMicros(max_usd)),
    approvedUntil: later(deps.taskClock.now(), approvedMs).toISOString(),
    approvedTerms: termsHash(row, authority),
  }
  await begin(deps, { row, authority: { ...authority, ...approved }, act })
  return viewOf(deps, await requireSchedule(act.tx, userId, id), facts)
}

/** Throws if the agent was linked or unlinked since the request: the person who decides now has not seen that. */
function assertSameLink(owner: Owner | undefined, { personId, linkedAt }: Partial<StoredCaller>): void {
  const link = owner?.linkedAt
    ? { personId: owner.userId, linkedAt: owner.linkedAt.toISOString() }
    : undefined
  if (link?.personId !== personId || link?.linkedAt !== linkedAt)
    throw new Fault('conflict', 'The link of the agent was changed since: activate the schedule again', {
      extras: { status: 'link_changed' },
    })
}

export async function pause(
  deps: ScheduleDeps,
  { schedule_id: id }: ScheduleInputOf<'pause'>,
  { facts, caller: { userId }, act }: Omit<MaybeBeginning, 'id'>,
): Promise<ScheduleView> {
  await store.lockRunsAndSchedules(act.tx, userId)
  const row = await requireSchedule(act.tx, userId, id)
  if (row.status === 'paused') return viewOf(deps, row, facts)
  if (row.status !== 'active')
    throw new Fault('conflict', `The schedule is ${row.status}, so it does not run`, {
      extras: { status: row.status },
    })
  await stop(deps, { ids: [id], status: 'paused', userId, act })
  return viewOf(deps, await requireSchedule(act.tx, userId, id), facts)
}

type Stop = {
  ids: readonly string[]
  status: 'paused' | 'disabled'
  userId: string
  act: ActScope
  cancelsRunning?: boolean
}

const stopTexts = { paused: 'Paused by its user', disabled: 'Disabled by its user' } as const

/** Stops schedules: waiting runs are cancelled in the same commit, so no run starts after that commit. */
async function stop(
  { slots, tasks }: ScheduleDeps,
  { ids, status, userId, act, cancelsRunning = false }: Stop,
): Promise<void> {
  for (const id of ids)
    await slots.disarm(act.tx, id, {
      status,
      reason: statusReason({ reason: 'user', text: stopTexts[status] }),
    })
  const runs = await store.openRuns(act.tx, ids, { hasStarted: cancelsRunning })
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
  const cancelsRunning = input.cancel_running ?? false
  await stop(deps, {
    ids: disabled,
    status: 'disabled',
    userId,
    act,
    cancelsRunning,
  })
  return {
    disabled,
    already: wanted ? known.filter(hasEnded) : [],
    not_found: ids.filter((id) => !statuses.has(id)),
  }
}

/** Returns the schedule ids that a request names, each once; undefined stands for all schedules. */
function idsIn({ schedule_ids, schedule_id, all }: ScheduleInputOf<'disable'>): string[] | undefined {
  const given = [schedule_ids !== undefined, schedule_id !== undefined, all === true].filter(Boolean)
  if (given.length !== 1) throw exactlyOneOf('schedule_ids', 'all', { hasBoth: given.length > 1 })
  const ids = schedule_ids ?? (schedule_id === undefined ? undefined : [schedule_id])
  return ids && [...new Set(ids.map((id) => id.toLowerCase()))]
}
