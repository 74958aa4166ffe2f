import type { JsonObject } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import { adoptedKind } from '#store/record-found-effect.ts'
import { positionPrefix } from './ledger-accounts.ts'

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

const ofVault = `p.user_id = $1 and p.chain_id = $2 and p.vault = $3
       and p.id < coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')`
const columns = 'p.id, p.created_at, p.cost_units'

/** A page reads a limited number of rows, however many positions the user has emptied. */
const pagesSql = {
  all: `select ${columns}, coalesce(a.avail + a.held, 0) as shares
     from earn_position p
       left join account a on a.owner = p.user_id and a.asset = $4 and a.sub_account = '${positionPrefix}' || p.id
     where ${ofVault} order by p.id desc limit $6`,
  active: `select ${columns}, a.shares
     from (select sub_account, avail + held as shares from account
         where owner = $1 and asset = $4 and has_units and sub_account collate "C" >= '${positionPrefix}'
           and sub_account collate "C" < '${positionPrefix}' || coalesce($5::uuid::text, 'g')
         order by sub_account collate "C" desc limit $6) a
       cross join lateral (select * from earn_position where id = substr(a.sub_account, ${positionPrefix.length + 1})::uuid
         limit 1) p
     where ${ofVault} order by p.id desc`,
  withdrawn: `select ${columns}, 0::numeric as shares from earn_position p
     where ${ofVault} and not coalesce((select has_units from account
         where owner = $1 and asset = $4 and sub_account = '${positionPrefix}' || p.id), false)
     order by p.id desc limit $6`,
}

/** Returns a page of positions, the newest first, from the one that follows `after`. */
export const positionsPage = (
  db: Queryable,
  userId: string,
  { chainId, vault }: VaultRef,
  { limit, after, status, asset }: PositionsPage,
): Promise<PositionView[]> =>
  query(db, pagesSql[status ?? 'all'], [userId, chainId, vault, asset, after ?? null, limit])

export const findPosition = (db: Queryable, userId: string, vaultRef: VaultRef, id: string) =>
  fetchOne<PositionRow>(db, positionsQuery(userId, vaultRef).where('id', '=', id))

export const newestPosition = (db: Queryable, userId: string, vaultRef: VaultRef) =>
  fetchOne<PositionRow>(db, positionsQuery(userId, vaultRef).orderBy('id', 'desc').limit(1))

/** The position that `time adopt` opened for an earlier execution of a request, and whether a sync has filled it. */
export async function adoptedPosition(
  db: Queryable,
  { userId, executionId, asset }: { userId: string; executionId: string; asset: string },
): Promise<{ id: string; has_shares: boolean } | undefined> {
  const [row] = await query<{ id: string; has_shares: boolean }>(
    db,
    `select t.data->>'position_id' as id, coalesce(a.has_units, false) as has_shares from task t
       left join account a on a.owner = t.user_id and a.asset = $3
         and a.sub_account = '${positionPrefix}' || (t.data->>'position_id')
       where t.user_id = $1 and t.execution_id = $2 and t.kind = $4 and t.data ? 'position_id'`,
    [userId, executionId, asset, adoptedKind],
  )
  return row
}

/**
 * Returns a page of tasks, the newest first, from the one that follows `after`. A range for each of the two kinds
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

/** Stores the share price of a block; a repeated write for the same block changes nothing. */
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
