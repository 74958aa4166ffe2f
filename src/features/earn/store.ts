import type { JsonObject, Tx } from '#kernel/task.ts'
import { all, one, type Queryable, q, send } from '#store/query.ts'

export type PositionRow = { id: string; number: number; created_at: Date }
export type EarnTaskRow = {
  id: string
  kind: string
  status: string
  data: JsonObject
  result: JsonObject | null
  error: JsonObject | null
  created_at: Date
}
type Place = { chainId: string; vault: string }

export const historyMost = 500

const positionsQuery = (userId: string, { chainId, vault }: Place) =>
  q
    .selectFrom('earn_position')
    .select(['id', 'number', 'created_at'])
    .where('user_id', '=', userId)
    .where('chain_id', '=', chainId)
    .where('vault', '=', vault)

export const positionsOf = (on: Queryable, userId: string, place: Place): Promise<PositionRow[]> =>
  all(on, positionsQuery(userId, place).orderBy('number'))

export const findPosition = (on: Queryable, userId: string, place: Place, id: string) =>
  one<PositionRow>(on, positionsQuery(userId, place).where('id', '=', id))

type NewPosition = { id: string; userId: string; now: Date } & Place

/** Under the lock of the user's policy row, so that two deposits of one moment get two numbers. */
export async function addPosition(tx: Tx, { id, userId, chainId, vault, now }: NewPosition): Promise<void> {
  await send(
    tx,
    `insert into earn_position (id, user_id, chain_id, vault, number, created_at)
     select $1::uuid, $2::uuid, $3::text, $4::text, coalesce(max(number), 0) + 1, $5::timestamptz
       from earn_position where user_id = $2 and chain_id = $3 and vault = $4`,
    [id, userId, chainId, vault, now],
  )
}

/** Newest first. Everything that ever happened to a position is a task of one of two kinds. */
export const earnTasksOf = async (on: Queryable, userId: string, most?: number): Promise<EarnTaskRow[]> => {
  const query = q
    .selectFrom('task')
    .select(['id', 'kind', 'status', 'data', 'result', 'error', 'created_at'])
    .where('user_id', '=', userId)
    .where('kind', 'in', ['earn_deposit', 'earn_withdraw'])
    .orderBy('id', 'desc')
  return (await all(on, most === undefined ? query : query.limit(most))) as EarnTaskRow[]
}

export type SharePriceRow = { at: Date; price: string }

export const sharePricesSince = (
  on: Queryable,
  { chainId, vault }: Place,
  since: Date,
): Promise<SharePriceRow[]> =>
  all(
    on,
    q
      .selectFrom('share_price')
      .select(['at', 'price'])
      .where('chain_id', '=', chainId)
      .where('vault', '=', vault)
      .where('at', '>=', since)
      .orderBy('at'),
  )

/** The same block asked twice is the same price. */
export async function addSharePrice(
  on: Queryable,
  { chainId, vault }: Place,
  { at, block, price }: { at: Date; block: bigint; price: string },
): Promise<void> {
  await send(
    on,
    `insert into share_price (chain_id, vault, at, block, price) values ($1, $2, $3, $4, $5) on conflict do nothing`,
    [chainId, vault, at, block, price],
  )
}
