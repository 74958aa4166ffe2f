import type pg from 'pg'
import { taskPriority } from '#durable/task/task-kinds.ts'
import type { Task } from '#durable/task/task-row.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import type { Draw } from '#kernel/task/ledger-draw.ts'
import type { PolicyGrant } from '#kernel/task/policy-action.ts'
import {
  type Admission,
  type Effect,
  type FeatureRows,
  type JsonObject,
  type NewEvent,
  type NonceSequence,
  spendKey,
  type TaskKind,
  type Tx,
} from '#kernel/task/task.ts'
import { jsonText, query } from '#store/query.ts'
import { possibleDuplicate, type RecentRequest } from './duplicate-requests.ts'
import { accountBusy } from './faults.ts'
import type { LockWait } from './lock-waiters.ts'

/** The statement that inserts acceptances, and its verdict about each of them. */

export type NewTask = {
  id?: string
  userId: string
  kind: TaskKind
  input: JsonObject
  admission: Admission
  key?: { key: string; operation: string; hash: string }
  parentId?: string
  /** The connected app that asked; absent if a key pair, a page of the gateway or the gateway itself did. */
  clientId?: string
  /** The id under which executions of the task are looked up; the task's own id serves if this is absent. */
  executionId?: string
  request?: RecentRequest
  /** Whether this instance runs the inserted task at once, so that the task needs no claim. */
  leased: boolean
  runAt?: Date
  /** Set for a task that a person has to approve; all other tasks start in the state `accepted`. */
  state?: 'awaiting_approval'
  events?: NewEvent[]
}
/** A task to accept, in its first state, with everything else that the accepting statement needs. */
export type Acceptance = {
  task: Task
  wanted: NewTask
  events: NewEvent[]
  grant?: PolicyGrant | undefined
  /** Asks the policy again: throws the policy's fault, or returns a grant by the present limits. */
  check?: (() => Promise<PolicyGrant>) | undefined
  rows?: FeatureRows[] | undefined
  signature?: StoredSignature
  /** How the task is signed within the accepting transaction, after every check that may refuse the acceptance. */
  inOrder?: SignatureInOrder
}
export type StoredSignature = { effect: Effect; json: object }
export type SignatureInOrder = {
  sequence: NonceSequence
  minNonce: bigint
  sign(nonce: bigint): Promise<StoredSignature>
}

export type Verdict =
  | { verdict: 'accepted'; last: bigint | null }
  | { verdict: 'key_taken' }
  | { verdict: 'duplicate'; taskId: string }
  | { verdict: 'policy' }
  | { verdict: 'stale' }
  | { verdict: 'orders'; open: number }
  | { verdict: 'gas'; usedWei: bigint }
  | { verdict: 'draw'; availableUnits: bigint }
  | { verdict: 'short'; requiredUnits: bigint; availableUnits: bigint }

type VerdictRow = {
  n: number
  verdict: Verdict['verdict']
  detail: { task_id?: string; open?: number; used?: string; required?: string; available?: string } | null
  last: bigint | string | null
}

/** Inserts each acceptance whole or not at all, and returns their verdicts. This instance runs the leased tasks. */
export async function insertAcceptances(
  db: pg.Pool | Tx,
  instanceId: string,
  acceptances: readonly Acceptance[],
  { lockWaitMs }: LockWait = {},
): Promise<Verdict[]> {
  const json = acceptances.map((acceptance, n) => acceptanceJson(acceptance, n, instanceId))
  const rows = await query<VerdictRow>(db as pg.Pool, 'select * from task_accept($1::jsonb, $2)', [
    jsonText(json),
    lockWaitMs,
  ])
  const verdicts = new Map(rows.map((row) => [row.n, toVerdict(row)]))
  return acceptances.map((_, n) => {
    const verdict = verdicts.get(n)
    if (!verdict) throw new Error('the accepting statement returned no verdict for an acceptance')
    return verdict
  })
}

function toVerdict({ verdict, detail, last }: VerdictRow): Verdict {
  if (verdict === 'accepted') return { verdict, last: last === null ? null : BigInt(last) }
  if (verdict === 'duplicate') return { verdict, taskId: detail?.task_id ?? '' }
  if (verdict === 'orders') return { verdict, open: detail?.open ?? 0 }
  if (verdict === 'gas') return { verdict, usedWei: BigInt(detail?.used ?? 0) }
  if (verdict === 'draw') return { verdict, availableUnits: BigInt(detail?.available ?? 0) }
  if (verdict !== 'short') return { verdict }
  const { required = 0, available = 0 } = detail ?? {}
  return { verdict, requiredUnits: BigInt(required), availableUnits: BigInt(available) }
}

export class KeyTaken extends Error {}
/** Thrown if an account was settled after its balance was read, so that the reading may be outdated. */
export class StaleBalance extends Error {}

/** Returns the error of a refused acceptance, which a repetition of the same statement cannot change. */
export function refusalOf(verdict: Exclude<Verdict, { verdict: 'accepted' }>, { admission }: NewTask): Error {
  const { spend } = admission
  if (verdict.verdict === 'key_taken') return new KeyTaken('the idempotency key is taken')
  if (verdict.verdict === 'duplicate') return possibleDuplicate(verdict.taskId)
  if (verdict.verdict === 'stale') return new StaleBalance('the balance was read before a settlement')
  if (verdict.verdict === 'policy') return accountBusy()
  if (verdict.verdict === 'orders') return orderRefusal(verdict.open, admission)
  if (verdict.verdict === 'gas') return gasRefusal(verdict.usedWei, admission)
  if (verdict.verdict === 'draw') return drawRefusal(verdict.availableUnits, admission)
  const symbol = spend?.account?.asset ?? ''
  // A transfer within the gateway names no token, so its units have no decimals.
  return insufficientBalance(spend?.token ?? { symbol, decimals: 0, address: symbol }, verdict)
}

function gasRefusal(usedWei: bigint, { spend }: Admission): Fault {
  if (!spend?.gas) throw new Error('an acceptance without gas was refused for its gas')
  return spend.gas.refuse(usedWei)
}

function drawRefusal(availableUnits: bigint, { draw }: Admission): Fault {
  if (!draw) throw new Error('an acceptance without a draw was refused for its draw')
  return draw.refuse(availableUnits)
}

function orderRefusal(open: number, { orders }: Admission): Fault {
  if (!orders) throw new Error('an acceptance without orders was refused for its orders')
  return orders.refuse(open)
}

/** Returns one element of the argument of the database function `task_accept`. */
function acceptanceJson(
  { task, wanted, events, grant, rows = [], signature, inOrder }: Acceptance,
  n: number,
  instanceId: string,
) {
  const { kind, key, leased, admission, request, runAt = task.created_at } = wanted
  return {
    n,
    id: task.id,
    shard: task.shard,
    user_id: task.user_id,
    parent_id: task.parent_id,
    key: key?.key,
    operation: key?.operation,
    hash: key?.hash,
    idempotency_key: task.idempotency_key,
    execution_id: task.execution_id,
    request_hash: request?.hash,
    duplicates_since: request?.since,
    kind: task.kind,
    kind_version: task.kind_version,
    priority: taskPriority(kind, task),
    input: task.input,
    data: task.data,
    step: task.step,
    status: task.status,
    state: task.state,
    run_at: runAt,
    deadline: task.deadline,
    owner: leased ? instanceId : null,
    created_at: task.created_at,
    updated_at: task.updated_at,
    orders: admission.orders?.count,
    orders_max: admission.orders?.max,
    signed: signature?.json,
    rows: rowsByTable([
      ...(admission.rows ?? []),
      ...rows,
      ...chatRows(task, admission),
      ...budgetRows(task, admission, grant),
    ]),
    events,
    ...grantJson(grant, {
      hasSigned: signature !== undefined || inOrder !== undefined,
      isOfChat: isOfChat(admission),
    }),
    ...budgetJson(admission),
    ...spendJson(task, admission),
    ...(admission.draw && { draw: drawJson(admission.draw) }),
  }
}

const drawJson = ({ asset, subAccounts, minUnits, maxUnits, reason }: Draw) => ({
  asset,
  accounts: subAccounts,
  min: String(minUnits),
  max: String(maxUnits),
  reason,
})

/** A task that a chat itself starts also counts against the limit of chats. */
const isOfChat = ({ spend }: Admission): boolean => spend?.action.principal === 'chat'

const chatRows = (task: Task, admission: Admission): FeatureRows[] =>
  isOfChat(admission)
    ? [
        {
          table: 'policy_chat_spend',
          rows: [{ task_id: task.id, user_id: task.user_id, at: task.created_at.toISOString() }],
        },
      ]
    : []

/** The budget of the schedule whose run starts the task. */
const budgetJson = ({ spend }: Admission) => {
  const budget = spend?.action.budget
  return budget && { strategy_id: budget.scheduleId, budget: String(budget.micros) }
}

/** What a run starts counts against the budget of its schedule until its worth is known. */
const budgetRows = (task: Task, { spend }: Admission, grant: PolicyGrant | undefined): FeatureRows[] => {
  const budget = spend?.action.budget
  if (!budget || !grant || grant.countedMicros <= 0n) return []
  const row = {
    task_id: task.id,
    strategy_id: budget.scheduleId,
    usd_micros: String(grant.countedMicros),
    at: task.created_at.toISOString(),
  }
  return [{ table: 'strategy_spend', rows: [row] }]
}

/** A task that is signed with its acceptance has already used the spend that it counts against the limits. */
const grantJson = (
  grant: PolicyGrant | undefined,
  { hasSigned, isOfChat }: { hasSigned: boolean; isOfChat: boolean },
) =>
  grant && {
    policy_version: grant.version,
    counted: String(grant.countedMicros),
    authorized: hasSigned ? String(grant.countedMicros) : '0',
    per_day: String(grant.perDayMicros),
    policy_chain: grant.chainId,
    is_exit: grant.exit,
    is_exempt: grant.exempt,
    ...(isOfChat && { chat_per_day: String(grant.chatPerDayMicros) }),
  }

function spendJson(task: Task, { spend }: Admission) {
  if (!spend) return {}
  const { account, amountUnits = 0n, seen, gas, action } = spend
  if (account && account.owner !== task.user_id)
    throw new Error(`${task.kind} spends from an account of another user`)
  return {
    gas_chain: gas?.chainId,
    gas_day: gas && task.created_at.toISOString().slice(0, 10),
    gas_wei: gas && String(gas.wei),
    gas_budget: gas?.budgetWei == null ? null : String(gas.budgetWei),
    ...(account && {
      asset: account.asset,
      sub_account: account.subAccount,
      amount: String(amountUnits),
      seen_total: seen && String(seen.totalUnits),
      seen_version: seen && String(seen.version),
      reason: action.operation,
      hold_key: spendKey(task.id),
    }),
  }
}

function rowsByTable(all: readonly FeatureRows[]): Record<string, object[]> | null {
  if (all.length === 0) return null
  const byTable: Record<string, object[]> = {}
  for (const { table, rows } of all) byTable[table] = [...(byTable[table] ?? []), ...rows]
  return byTable
}
