import { Fault } from '#kernel/contract/fault.ts'
import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'

/**
 * The markets that strategies trade live. Perpetual positions net for an account, so a market has one strategy at a time.
 * Every statement here runs under the lock of the schedules of the user.
 */

/**
 * Returns the SQL condition that a strategy needs its markets: it is active live, its live account has something open or
 * resting, or a live run of it has not ended.
 */
export const isHeldSql = (id: string): string => `(
  exists (select from strategy h join strategy_version hv on hv.strategy_id = h.id and hv.version = h.version
    where h.id = ${id} and h.status = 'active' and hv.mode = 'live')
  or exists (select from strategy_account h where h.strategy_id = ${id} and h.mode = 'live' and h.watch_at is not null)
  or exists (select from strategy_execution h where h.strategy_id = ${id} and h.mode = 'live'
    and h.status in ('pending', 'running')))`

type Claim = { id: string; user_id: string }

/** Makes a strategy the owner of its markets; throws if another one of the user needs one of them. */
export async function claimAssets(
  tx: Tx,
  { id, user_id: userId }: Claim,
  assets: readonly string[],
): Promise<void> {
  const [taken] = await query<{ market: string; strategy_id: string }>(
    tx,
    `select a.market, a.strategy_id from strategy_asset a where a.user_id = $1 and a.market = any($2::text[])
       and a.strategy_id <> $3 and ${isHeldSql('a.strategy_id')} order by a.market limit 1`,
    [userId, assets, id],
  )
  if (taken) throw assetInUse(taken)
  await query(
    tx,
    `insert into strategy_asset (user_id, market, strategy_id) select $1, unnest($2::text[]), $3
     on conflict (user_id, market) do update set strategy_id = excluded.strategy_id`,
    [userId, assets, id],
  )
}

export const assetInUse = ({ market, strategy_id }: { market: string; strategy_id: string }): Fault =>
  new Fault(
    'asset_in_use',
    `Another strategy trades ${market} live: pause it, and let it close what it has open, before this one is activated`,
    { extras: { schedule_id: strategy_id, asset: market } },
  )

/** Releases the markets of those strategies that need them no more. */
export const releaseAssets = (tx: Tx, strategyIds: readonly string[]) =>
  query(
    tx,
    `delete from strategy_asset a where a.strategy_id = any($1::uuid[]) and not ${isHeldSql('a.strategy_id')}`,
    [strategyIds],
  )
