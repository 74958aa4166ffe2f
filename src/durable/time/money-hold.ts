import { Fault } from '#kernel/contract/fault.ts'
import { ruledOutFields } from '#kernel/task/forgotten-execution.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'

/**
 * The reasons why money waits. While one lasts, nothing is accepted, signed, fired or repaired. This includes exits: if
 * the database forgot that a stop has sold, the stop would sell twice. The table `money_hold` has the holds of all
 * instances; while an instance compares the database with the chains, it also has holds of its own.
 */

export const everything = 'all'

const sentences = {
  restored: 'the database was restored from a backup',
  went_back: 'the database lacks commits that a gateway has seen',
  other_server: 'the database is on another server than before',
  lost_commits: 'the database lost commits',
  foreign_batches: 'a chain has batches of users that the database does not know',
  no_memory: 'this gateway does not know the database yet and compares it with the chains',
  new_timeline: 'the database server was replaced and is compared with the chains',
  not_compared: 'the chain was not compared with the database yet',
} as const
export type HoldReason = keyof typeof sentences

export type MoneyHold = {
  scope: string
  reason: HoldReason
  since: Date
  detail: JsonObject
  point?: Date | null
  /** When all executions since `point` had been compared; null before, absent for a hold of this instance alone. */
  comparedAt?: Date | null
}

/** When a client may retry, for holds that end by themselves; one that waits for an operator takes longer. */
const retrySeconds: Partial<Record<HoldReason, number>> = { no_memory: 2, new_timeline: 2, not_compared: 10 }
const operatorRetrySeconds = 60

export const holdSentence = (reason: HoldReason): string => sentences[reason]

/** Returns the sentence about a hold of money that an operator reads at the start of a gateway. */
export function holdNotice({ scope, reason, since }: MoneyHold): string {
  const money = scope === everything ? 'All money' : `Money of chain ${scope}`
  const wayOut =
    retrySeconds[reason] === undefined
      ? 'Run `npm run admin -- time show`, then `time adopt` and `time resume`'
      : 'It goes on by itself once all is compared; `npm run admin -- time show` prints more'
  return `${money} is on hold since ${since.toISOString()}: ${holdSentence(reason)}. ${wayOut}.`
}

/** Thrown while money is on hold: nothing was accepted, signed or sent. A task waits, and no attempt counts. */
export class MoneyHeld extends Fault {
  readonly hold: MoneyHold
  /**
   * `key` is the idempotency key of a request of which an earlier call may have executed something that the database
   * forgot.
   */
  constructor(hold: MoneyHold, key?: string) {
    const { scope, reason, since } = hold
    const sent =
      key === undefined ? 'nothing was sent' : 'whether this key has sent something before is not known'
    super('unavailable', `Money is on hold: ${holdSentence(reason)}; ${sent}`, {
      extras: {
        reason: 'money_on_hold',
        hold: reason,
        scope,
        since: since.toISOString(),
        retry_after: retrySeconds[reason] ?? operatorRetrySeconds,
        ...(key !== undefined && { outcome: 'unknown', idempotency_key: key }),
      },
    })
    this.hold = hold
  }
}

export type MoneyHolds = {
  /** Returns a hold of everything, or of the chain; undefined if money may move. */
  find(chainId?: string): MoneyHold | undefined
  assertFree(chainId?: string): void
  /** Whether all money waits until an operator lets it go on; false also for a hold that ends by itself. */
  waitsForOperator(): boolean
  list(): MoneyHold[]
  /** Sets the holds of the table `money_hold`, as the last heartbeat read them. */
  setStored(holds: readonly MoneyHold[]): void
  setLocal(hold: MoneyHold): void
  clearLocal(scope: string): void
  onFree(listener: () => void): void
}

export function createMoneyHolds(): MoneyHolds {
  let stored = new Map<string, MoneyHold>()
  const local = new Map<string, MoneyHold>()
  const listeners: (() => void)[] = []
  const ofScope = (scope: string) => stored.get(scope) ?? local.get(scope)
  const find = (chainId?: string) =>
    ofScope(everything) ?? (chainId === undefined ? undefined : ofScope(chainId))
  const change = (apply: () => void) => {
    const wasHeld = find() !== undefined
    apply()
    if (wasHeld && !find()) for (const listener of listeners) listener()
  }
  return {
    find,
    assertFree(chainId) {
      const hold = find(chainId)
      if (hold) throw new MoneyHeld(hold)
    },
    waitsForOperator() {
      const hold = find()
      return hold !== undefined && retrySeconds[hold.reason] === undefined
    },
    list: () => [...new Map([...local, ...stored]).values()],
    setStored: (holds) =>
      change(() => {
        stored = new Map(holds.map((hold) => [hold.scope, hold]))
        // Once the table has a hold that this instance found, the hold ends with its row, so the local copy is dropped.
        for (const { scope, reason } of holds) if (local.get(scope)?.reason === reason) local.delete(scope)
      }),
    setLocal: (hold) => void local.set(hold.scope, hold),
    clearLocal: (scope) => change(() => void local.delete(scope)),
    onFree: (listener) => void listeners.push(listener),
  }
}

/**
 * Stores a hold, which all instances obey from their next heartbeat on. If the scope is already on hold, the earlier
 * hold stays and gets the new facts; if the new point is earlier, the scope is compared again. Nothing is stored if an
 * operator has accepted the database since `generation` was read. The row lock of the statement waits until such an
 * acceptance that has begun is over.
 */
export async function storeHold(
  db: Queryable,
  { scope, reason, since, detail, point = null }: MoneyHold,
  generation?: number,
): Promise<void> {
  await query(
    db,
    `with judged as (select from database_binding
       where key = 'time_generation' and ($6::text is null or value = $6) for share)
     insert into money_hold as h (scope, reason, since, detail, point)
       select $1::text, $2::text, $3::timestamptz, $4::jsonb, $5::timestamptz from judged
     on conflict (scope) do update set detail = excluded.detail || h.detail, point = least(h.point, excluded.point),
       compared_at = case when excluded.point < h.point then null else h.compared_at end`,
    [scope, reason, since, jsonText(detail), point, generation === undefined ? null : String(generation)],
  )
}

/**
 * Lets each open task look up executions that the database may have forgotten. A task without an execution id gets its
 * own id, and no task keeps what it has ruled out before, because the database may have gone back to that state. The
 * task's version is raised, so a step that runs meanwhile is refused its commit.
 */
export async function letTasksLookUp(db: Queryable): Promise<void> {
  await query(
    db,
    `with own as (select t.id from task t join task_queue q on q.task_id = t.id
       where t.execution_id is null or t.data ?| $1::text[] order by t.id for no key update of t)
     update task t set execution_id = coalesce(t.execution_id, t.id), data = t.data - $1::text[],
       version = t.version + 1 from own where t.id = own.id`,
    [ruledOutFields],
  )
}

/** Returns the database's generation, which an operator raises; a judgement of an earlier one is void. */
export async function readGeneration(db: Queryable): Promise<number> {
  const [row] = await query<{ value: number }>(
    db,
    `select value::float8 as value from database_binding where key = 'time_generation'`,
  )
  return row!.value
}

/**
 * Accepts the database as it is: nothing that a gateway saw before counts any longer. A generation never
 * repeats, not even if one backup is restored twice. It is raised before the hold is deleted, so that nobody
 * stores that hold again.
 */
export async function raiseGeneration(tx: Queryable): Promise<void> {
  await query(
    tx,
    `update database_binding set value = greatest(value::bigint + 1, extract(epoch from clock_timestamp())::bigint)::text
       where key = 'time_generation'`,
  )
}
