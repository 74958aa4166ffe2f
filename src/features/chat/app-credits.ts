import type { StoredCaller } from '#engines/stored-callers/stored-caller.ts'
import { appOf, type Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Queryable, query } from '#store/query.ts'
import type { ChatTurnRow } from '#store/tables/chat.ts'

/** An app spends no more of a person's credits in a day than the person allows. */

/** `appCredits` is the most that the answer takes of what its app may spend in a day. */
type TurnCaller = StoredCaller & { appCredits?: number }

const dayOf = (at: Date): string => at.toISOString().slice(0, 10)

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
  const clientId = appOf(caller)
  if (clientId === null) return undefined
  const names = [caller.userId, clientId]
  await query(
    db,
    'insert into app_credits (user_id, client_id) values ($1, $2) on conflict do nothing',
    names,
  )
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
  if (row) return BigInt(row.reserved)
  throw new Fault(
    'insufficient_credits',
    'This app may spend no more credits of its person today: the person allows more by connecting it again, or the operator does, and the next day begins at midnight UTC',
    { extras: { required: Number(min), reason: 'credits of the app in a day' } },
  )
}

export async function returnAppCredits(tx: Queryable, turn: ChatTurnRow, used: number): Promise<void> {
  const { clientId, appCredits } = turn.caller as TurnCaller
  if (clientId === undefined || appCredits === undefined || appCredits <= used) return
  await query(
    tx,
    `update app_credits set used = greatest(0, used - $4) where user_id = $1 and client_id = $2 and day = $3`,
    [turn.user_id, clientId, dayOf(turn.created_at), appCredits - used],
  )
}
