import { assertUncontested } from '#engines/agent-links/owners.ts'
import type { StoredCaller } from '#engines/stored-callers/stored-caller.ts'
import { later } from '#kernel/clock.ts'
import { type ActScope, type Caller, type Scope, scopes } from '#kernel/contract/caller.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { toMicros } from '#kernel/money/money.ts'
import type { RequestedAct } from '#kernel/task/act-approval-request.ts'
import { isFreshPerson } from '#kernel/task/fresh-sign-in.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Owner, personOf } from '#store/person-of-user.ts'
import type { ScheduleInputOf } from './contract.ts'
import { statusReason } from './run-events.ts'
import {
  assertScopes,
  assertVersion,
  isLive,
  missingOf,
  requireSchedule,
  type ScheduleDeps,
  viewOf,
} from './schedule-deps.ts'
import { activeMax, type ScheduleView, type SetupItemView } from './schedule-schemas.ts'
import type { UserFacts } from './setup-checklist.ts'
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
import { assetInUse, claimAssets } from './strategy-assets.ts'
import { compiledOf } from './views.ts'

/** This module activates schedules. */

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
  if (isLive(row)) await claimAssets(tx, row, compiledOf(row).assets ?? [])
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
  const needed = neededScopes(deps, row)
  const allowed = scopes.filter((scope) => needed.has(scope) && caller.scopes.has(scope))
  const access = await deps.authorityOf(tx, { ...caller, scopes: new Set(allowed) })
  const owner = await personOf(tx, caller.userId)
  const given = owner?.contestedAt ? { ...row, authority: null } : row
  return { ...access, ...approvedBefore(given, { access, now: deps.taskClock.now() }) }
}

/** Returns the scopes that a run needs: it chats, reads, and starts what its query orders. */
const neededScopes = ({ scopeOf }: ScheduleDeps, row: store.ScheduleRow): ReadonlySet<Scope> => {
  const operations = row.mode === 'paper' ? [] : compiledOf(row).operations
  return new Set(['chat', 'read', ...operations.flatMap((operation) => scopeOf(operation) ?? [])])
}

type Reserved = { row: store.ScheduleRow; facts: UserFacts; authority: { approvedMicros?: string } }
/**
 * Returns the maximum value of one order if a person has to approve orders of that value first; undefined otherwise.
 */
function maxUnapproved({ row, facts, authority }: Reserved): string | undefined {
  const maxUsd = maxToApprove(row, facts)
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
  { schedule_id: id, expected_version, waive_paper: waivesPaper = false }: ScheduleInputOf<'activate'>,
  { facts, caller, act }: Omit<MaybeBeginning, 'id'>,
): Promise<ScheduleView | RequestedAct> {
  const { userId } = caller
  await lockToBegin(deps, act.tx, caller)
  const row = await requireSchedule(act.tx, userId, id)
  assertVersion(row, expected_version)
  if (row.status === 'active') return viewOf(deps, row, facts)
  assertScopes(deps, { ...row, compiled: compiledOf(row) }, caller)
  assertComplete(deps, row, facts, { waivesPaper })
  const authority = await authorityFor(deps, { row, caller, tx: act.tx })
  const requested = await requestApproval(deps, { row, facts, authority, caller, act, waivesPaper })
  if (requested) return requested
  await begin(deps, { row, authority, act })
  return viewOf(deps, await requireSchedule(act.tx, userId, id), facts)
}

type Approvable = Omit<MaybeBeginning, 'id'> & {
  row: store.ScheduleRow
  authority: object & { approvedMicros?: string }
  waivesPaper: boolean
}

/** Asks a person to approve an activation, if one has to; returns the task that waits for the person. */
async function requestApproval(
  deps: ScheduleDeps,
  { row, facts, authority, caller, act, waivesPaper }: Approvable,
): Promise<RequestedAct | undefined> {
  const maxUsd = maxUnapproved({ row, facts, authority })
  const isWaived = waivesPaper && lacksPaper(deps, row, facts)
  const isForPerson = isWaived && !isFreshPerson(caller, deps.taskClock.now())
  if (maxUsd === undefined && !isForPerson) return undefined
  const view = viewOf(deps, row, facts)
  const request = approvalRequest({ row, view, maxUsd, authority, waivesPaper: isWaived })
  return deps.acts
    .requestAct(act, request, caller)
    .catch((error: unknown) => withoutPerson(error, { row, maxUsd, isWaived: isForPerson }))
}

type WithoutPerson = { row: store.ScheduleRow; maxUsd: string | undefined; isWaived: boolean }

/**
 * Ignores that no person could approve the orders of a prompt: its runs start those that need no approval, and recommend
 * the others. A strategy recommends nothing, so each of its runs would fail.
 */
function withoutPerson(error: unknown, { row, maxUsd, isWaived }: WithoutPerson): undefined {
  if (!(error instanceof Fault) || error.code !== 'step_up_required' || isWaived) throw error
  if (row.type === 'prompt') return undefined
  throw new Fault(
    'approval_required',
    `One run may order for ${maxUsd} USD, which a person has to approve, and no person belongs to this agent: order less, or link it to one by \`agents_link_code\``,
    { extras: { rule: 'approval_above_usd' } },
  )
}

const lacksPaper = (deps: ScheduleDeps, row: store.ScheduleRow, facts: UserFacts): boolean =>
  missingOf(deps, row, facts).some(({ key }) => key === 'paper_done')

function assertComplete(
  deps: ScheduleDeps,
  row: store.ScheduleRow,
  facts: UserFacts,
  { waivesPaper }: { waivesPaper: boolean },
): void {
  if (row.status === 'disabled' || row.status === 'completed')
    throw new Fault('conflict', `The schedule is ${row.status}: \`schedules_update\` makes a draft of it`, {
      extras: { status: row.status },
    })
  if (waivesPaper && !isLive(row))
    throw invalid('waive_paper', 'value_error', 'Value error: only a live strategy needs a run on paper')
  const missing = missingOf(deps, row, facts).filter(({ key }) => !(waivesPaper && key === 'paper_done'))
  const [inUse] = Object.entries(row.markets_in_use ?? {})
  if (inUse && missing.every(({ key }) => key === 'asset_free'))
    throw assetInUse({ market: inUse[0], strategy_id: inUse[1] })
  if (missing.length > 0) throw setupIncomplete(missing)
}

type ApprovedBeginning = { facts: UserFacts; userId: string; act: ActScope }

/** Activates the approved version of a schedule; throws if the schedule has changed since the approval. */
export async function activateApproved(
  deps: ScheduleDeps,
  { schedule_id: id, version_sha256, max_usd, waive_paper, authority }: ApprovedActivation,
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
  assertComplete(deps, row, facts, { waivesPaper: waive_paper === true })
  const approved = max_usd !== undefined && {
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
