import type { JsonObject } from '#kernel/task.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'

export type PositionRow = { id: string; created_at: Date }
export type EarnTaskRow = {
  id: string
  kind: string
  status: string
  data: JsonObject
  result: JsonObject | null
  error: JsonObject | null
  created_at: Date
}
type VaultRef = { chainId: string; vault: string }

const positionsQuery = (userId: string, { chainId, vault }: VaultRef) =>
  builder
    .selectFrom('earn_position')
    .select(['id', 'created_at'])
    .where('user_id', '=', userId)
    .where('chain_id', '=', chainId)
    .where('vault', '=', vault)

export type PositionView = PositionRow & { cost_units: string; shares: string }
type PositionsPage = {
  limit: number
  after: string | undefined
  status: 'active' | 'withdrawn' | undefined
  asset: string
}

/** Newest first, from the one after `after`. */
export const positionsPage = (
  db: Queryable,
  userId: string,
  { chainId, vault }: VaultRef,
  { limit, after, status, asset }: PositionsPage,
): Promise<PositionView[]> =>
  query(
    db,
    `select p.id, p.created_at, p.cost_units, coalesce(a.avail + a.held, 0) as shares
     from earn_position p
       left join account a on a.owner = p.user_id and a.asset = $4 and a.sub_account = 'position:' || p.id
     where p.user_id = $1 and p.chain_id = $2 and p.vault = $3
       and ($5::uuid is null or p.id < $5::uuid)
       and ($6::boolean is null or $6 = (coalesce(a.avail + a.held, 0) > 0))
     order by p.id desc limit $7`,
    [userId, chainId, vault, asset, after ?? null, status === undefined ? null : status === 'active', limit],
  )

export const findPosition = (db: Queryable, userId: string, vaultRef: VaultRef, id: string) =>
  fetchOne<PositionRow>(db, positionsQuery(userId, vaultRef).where('id', '=', id))

export const newestPosition = (db: Queryable, userId: string, vaultRef: VaultRef) =>
  fetchOne<PositionRow>(db, positionsQuery(userId, vaultRef).orderBy('id', 'desc').limit(1))

/**
 * Newest first, from the one after `after`. The history of a position consists of tasks of two kinds; a range per kind
 * makes the planner use the index by kind.
 */
export const earnTasksPage = (
  db: Queryable,
  userId: string,
  { limit, after }: { limit: number; after: string | undefined },
): Promise<EarnTaskRow[]> =>
  query(
    db,
    `select t.* from unnest(array['earn_deposit', 'earn_withdraw']) as k (name) cross join lateral (
       select id, kind, status, data, result, error, created_at from task
       where user_id = $1 and kind >= k.name and kind <= k.name
         and ($2::uuid is null or id < $2) and id <= coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
       order by kind, id desc limit $3) t
     order by t.id desc limit $3`,
    [userId, after ?? null, limit],
  )

export type SharePriceRow = { at: Date; price: string }

export const sharePricesSince = (
  db: Queryable,
  { chainId, vault }: VaultRef,
  since: Date,
): Promise<SharePriceRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('share_price')
      .select(['at', 'price'])
      .where('chain_id', '=', chainId)
      .where('vault', '=', vault)
      .where('at', '>=', since)
      .orderBy('at'),
  )

/** Idempotent per block. */
export async function addSharePrice(
  db: Queryable,
  { chainId, vault }: VaultRef,
  { at, block, price }: { at: Date; block: bigint; price: string },
): Promise<void> {
  await query(
    db,
    `insert into share_price (chain_id, vault, at, block, price) values ($1, $2, $3, $4, $5) on conflict do nothing`,
    [chainId, vault, at, block, price],
  )
}
