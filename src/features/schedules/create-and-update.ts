import type { ActScope, Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { uuidv7 } from '#kernel/id.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import type { StrategyRow, StrategyStatus } from '#store/tables/strategies.ts'
import { beginIfComplete, lockToBegin } from './activation.ts'
import type { ScheduleInputOf } from './contract.ts'
import { cutText } from './cut-text.ts'
import type { Plan, PlanInput } from './plan.ts'
import { statusReason } from './run-events.ts'
import {
  assertScopes,
  assertVersion,
  factsFor,
  requireSchedule,
  type ScheduleDeps,
  viewOf,
} from './schedule-deps.ts'
import { type ScheduleView, schedulesMax } from './schedule-schemas.ts'
import type { UserFacts } from './setup-checklist.ts'
import * as store from './store.ts'
import { releaseAssets } from './strategy-assets.ts'
import type { Compiled } from './strategy-orders.ts'
import { ordersOf, type StrategyTerms, storedFacts, termsOf } from './strategy-terms.ts'
import { changedPlan, newPlan } from './version-from-input.ts'
import { calendarOf, compiledOf, configOf, guardsOf } from './views.ts'

/** This module creates and edits schedules. */

type Prepared = { facts: UserFacts; plan: Plan; compiled: Compiled }
type Changing = { caller: Caller; act: ActScope }
type Wanted = Pick<ScheduleInputOf<'create'>, 'title' | 'notify' | 'thread_id' | 'status'>

const titleCharacters = 80

const notifyOf = (notify: Wanted['notify']) =>
  notify === undefined || notify === true ? 'all' : notify === false ? 'none' : 'failures'

const titleOf = (query: string): string => cutText(query.replace(/\s+/g, ' '), titleCharacters)

type Planned = { plan: Plan; terms: StrategyTerms | undefined }

async function prepare(
  deps: ScheduleDeps,
  { plan, terms }: Planned,
  input: Wanted,
  caller: Caller,
): Promise<Prepared> {
  const { userId } = caller
  const [facts, ordered] = await Promise.all([
    factsFor(deps, userId, [plan]),
    terms ? ordersOf(terms, plan) : deps.orderedBy(userId, plan.query),
    input.thread_id ? deps.assertThread(userId, input.thread_id) : undefined,
  ])
  const compiled = { ...ordered, notes: plan.notes }
  if (input.status === 'active') assertScopes(deps, { compiled, mode: plan.mode }, caller)
  return { facts, plan, compiled }
}

const versionOf = (
  id: string,
  version: number,
  { plan, compiled }: Prepared,
  at: Date,
): store.NewVersion => ({
  strategy_id: id,
  version,
  type: plan.type,
  query: plan.query,
  agent: plan.agent,
  mode: plan.mode,
  config: plan.config,
  budget_usd: plan.budgetUsd,
  paper_balance_usd: plan.paperBalanceUsd,
  calendar: plan.calendar,
  max_runs: plan.maxRuns,
  guards: plan.guards,
  on_missed: plan.onMissed,
  catch_up_seconds: plan.catchUpSeconds,
  compiled,
  created_at: at,
})

export async function prepareCreate(
  deps: ScheduleDeps,
  input: ScheduleInputOf<'create'>,
  caller: Caller,
): Promise<Prepared> {
  const now = deps.clock.now()
  const terms = await termsOf(deps, input, { now })
  return prepare(deps, { plan: newPlan(input, { now, terms }), terms }, input, caller)
}

export async function create(
  deps: ScheduleDeps,
  input: Wanted,
  prepared: Prepared,
  { caller, act }: Changing,
): Promise<ScheduleView> {
  const { tx } = act
  const now = deps.clock.now()
  await lockToBegin(deps, tx, caller)
  const { all } = await store.countSchedules(tx, caller.userId)
  if (all >= schedulesMax)
    throw new Fault(
      'limit_reached',
      `A user has at most ${schedulesMax} schedules: reuse a disabled one with \`schedules_update\``,
      { extras: { max: schedulesMax } },
    )
  const id = uuidv7(now, deps.random)
  await store.insertSchedule(tx, {
    id,
    user_id: caller.userId,
    title: input.title ?? titleOf(prepared.plan.query),
    thread_id: input.thread_id ?? null,
    notify: notifyOf(input.notify),
    created_at: now,
  })
  await store.insertVersion(tx, versionOf(id, 1, prepared, now))
  if (input.status === 'active') await beginIfComplete(deps, { id, facts: prepared.facts, caller, act })
  return viewOf(deps, await requireSchedule(tx, caller.userId, id), prepared.facts)
}

type PreparedUpdate = Prepared & { version: number; isEdited: boolean }

export async function prepareUpdate(
  deps: ScheduleDeps,
  input: ScheduleInputOf<'update'>,
  caller: Caller,
): Promise<PreparedUpdate> {
  const row = await requireSchedule(deps.db, caller.userId, input.schedule_id)
  assertVersion(row, input.expected_version)
  const stored = planOf(row)
  const now = deps.clock.now()
  const wanted: PlanInput = input
  const facts = storedFacts(compiledOf(row), stored.config)
  const terms = await termsOf(deps, wanted, { now, stored: { plan: stored, facts } })
  const plan = changedPlan(stored, wanted, { now, terms })
  const prepared = await prepare(deps, { plan, terms }, input, caller)
  return { ...prepared, version: row.version, isEdited: canonicalJson(plan) !== canonicalJson(stored) }
}

const planOf = (row: store.ScheduleRow): Plan => ({
  type: row.type,
  query: row.query,
  agent: row.agent as Agent,
  mode: row.mode,
  config: configOf(row),
  budgetUsd: row.budget_usd,
  paperBalanceUsd: row.paper_balance_usd,
  calendar: calendarOf(row),
  notes: compiledOf(row).notes,
  maxRuns: row.max_runs,
  guards: guardsOf(row),
  onMissed: row.on_missed,
  catchUpSeconds: row.catch_up_seconds,
})

/** The status that a schedule has after an edit; an ended schedule begins anew as a draft. */
const statusAfterEdit: Readonly<Record<StrategyStatus, StrategyStatus>> = {
  draft: 'draft',
  active: 'paused',
  paused: 'paused',
  disabled: 'draft',
  completed: 'draft',
}

export async function update(
  deps: ScheduleDeps,
  input: ScheduleInputOf<'update'>,
  prepared: PreparedUpdate,
  { caller, act }: Changing,
): Promise<ScheduleView> {
  const { tx } = act
  const { schedule_id: id, status: wanted } = input
  const now = deps.clock.now()
  await lockToBegin(deps, tx, caller)
  // Slots that are due by now are settled first, so that their runs use the version before the edit.
  await deps.slots.settle(tx, id)
  const row = await requireSchedule(tx, caller.userId, id)
  assertVersion(row, prepared.version)
  const { isEdited } = prepared
  const version = isEdited ? row.version + 1 : row.version
  if (isEdited) await store.insertVersion(tx, versionOf(id, version, prepared, now))
  const isActive = row.status === 'active'
  const status = wanted === 'draft' ? 'draft' : isActive && !isEdited ? 'active' : statusAfterEdit[row.status]
  await store.updateSchedule(tx, id, {
    ...(input.title !== undefined && { title: input.title }),
    ...(input.notify !== undefined && { notify: notifyOf(input.notify) }),
    ...(input.thread_id !== undefined && { thread_id: input.thread_id }),
    ...(status !== row.status && { status, status_reason: reasonOfEdit(row, status) }),
    ...(status !== 'active' && { next_at: null, following_at: null }),
    version,
    updated_at: now,
  })
  if (wanted === 'active' && status !== 'active')
    await beginIfComplete(deps, { id, facts: prepared.facts, caller, act })
  await releaseAssets(tx, [id])
  return viewOf(deps, await requireSchedule(tx, caller.userId, id), prepared.facts)
}

const reasonOfEdit = ({ status }: StrategyRow, next: StrategyStatus): string | null =>
  status === 'active' && next === 'paused'
    ? statusReason({ reason: 'edited', text: 'It was changed; `schedules_activate` lets it run again' })
    : null
