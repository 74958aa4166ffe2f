import type { StoredCaller } from '#engines/stored-callers/stored-caller.ts'
import { appOf, type Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Admission, Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import type { ChatTurnRow } from '#store/tables/chat.ts'

/** An app spends no more of a person's credits in a day than the person allows. */

/** `appCredits` is the most that the answer takes of what its app may spend in a day. */
type TurnCaller = StoredCaller & { appCredits?: number }

const dayOf = (at: Date): string => at.toISOString().slice(0, 10)

/**
 * Returns the user and the client id of the calling app, and adds a row for them if there is none. Undefined if the
 * caller is no app.
 */
async function keyOfApp(db: Queryable, caller: Caller): Promise<[string, string] | undefined> {
  const clientId = appOf(caller)
  if (clientId === null) return undefined
  const names: [string, string] = [caller.userId, clientId]
  await query(
    db,
    'insert into app_credits (user_id, client_id) values ($1, $2) on conflict do nothing',
    names,
  )
  return names
}

type Wanted = { min: bigint; max: bigint; now: Date }
/**
 * Reserves and returns what the app may spend on an answer; the reservation counts in full until the answer ends.
 * Returns undefined if the caller is not an app, so that no limit applies.
 */
export async function reserveAppCredits(
  db: Queryable,
  caller: Caller,
  { min, max, now }: Wanted,
): Promise<bigint | undefined> {
  const names = await keyOfApp(db, caller)
  if (!names) return undefined
  const [row] = await query<{ reserved: number }>(
    db,
    `with found as (
       select case when day = $3 then used else 0 end as used, per_day
       from app_credits where user_id = $1 and client_id = $2 for update
     )
     update app_credits a set day = $3, used = f.used + least($5, f.per_day - f.used) from found f
     where a.user_id = $1 and a.client_id = $2 and f.per_day - f.used >= $4
     returning least($5, f.per_day - f.used)::integer as reserved`,
    [...names, dayOf(now), Number(min), Number(max)],
  )
  if (!row) throw noneLeft(min)
  return BigInt(row.reserved)
}

const noneLeft = (min: bigint): Fault =>
  new Fault(
    'insufficient_credits',
    'This app may spend no more credits of its person today: the person allows more by connecting it again, or the operator does, and the next day begins at midnight UTC',
    { extras: { required: Number(min), reason: 'credits of the app in a day' } },
  )

/** Returns what `reserveAppCredits` would reserve; `acceptWithAppCredits` reserves it. */
export async function findAppCredits(
  db: Queryable,
  caller: Caller,
  { min, max, now }: Wanted,
): Promise<bigint | undefined> {
  const names = await keyOfApp(db, caller)
  if (!names) return undefined
  const [row] = await query<{ left: number }>(
    db,
    `select per_day - case when day = $3 then used else 0 end as left from app_credits
     where user_id = $1 and client_id = $2`,
    [...names, dayOf(now)],
  )
  const left = BigInt(row?.left ?? 0)
  if (left < min) throw noneLeft(min)
  return left < max ? left : max
}

/**
 * Accepts an admitted answer and reserves what its app may spend on it, in one transaction. A refused answer
 * reserves nothing. If other answers of the app took a part since the admission, it throws, and the caller admits again.
 */
export async function acceptWithAppCredits<T>(
  tx: Tx,
  { rows = [] }: Pick<Admission, 'rows'>,
  accept: () => Promise<T>,
): Promise<T> {
  const turn = rows.find(({ table }) => table === 'chat_turn')?.rows[0]
  const { clientId, appCredits } = (turn?.caller ?? {}) as Partial<TurnCaller>
  if (!turn || clientId === undefined || appCredits === undefined) return accept()
  const at = new Date(String(turn.created_at))
  const reserved = { user_id: String(turn.user_id), caller: turn.caller as TurnCaller, created_at: at }
  const taken = await query(
    tx,
    `update app_credits set day = $3, used = case when day = $3 then used else 0 end + $4
     where user_id = $1 and client_id = $2 and day <= $3 and per_day - case when day = $3 then used else 0 end >= $4
     returning used`,
    [turn.user_id, clientId, dayOf(at), appCredits],
  )
  if (taken.length === 0) throw new Fault('unavailable', 'Other answers took credits of the app meanwhile')
  return accept().catch(async (error: unknown) => {
    if (error instanceof Fault) await giveBack(tx, reserved, appCredits)
    throw error
  })
}

export async function returnAppCredits(tx: Queryable, turn: ChatTurnRow, used: number): Promise<void> {
  const { appCredits } = turn.caller as TurnCaller
  if (appCredits !== undefined && appCredits > used) await giveBack(tx, turn, appCredits - used)
}

const giveBack = (
  tx: Queryable | Tx,
  { user_id: userId, caller, created_at: at }: Pick<ChatTurnRow, 'user_id' | 'caller' | 'created_at'>,
  credits: number,
) =>
  query(
    tx,
    `update app_credits set used = greatest(0, used - $4) where user_id = $1 and client_id = $2 and day = $3`,
    [userId, (caller as TurnCaller).clientId, dayOf(at), credits],
  )
