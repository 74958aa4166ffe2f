import type { AccountRef, Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import type { EarnAccountRow } from '#store/tables/earn.ts'
import type { Vault } from '#upstreams/vault/vault.ts'

/** There is one row per user and vault: the last comparison with the chain, and whether new deposits are accepted. */

export type EarnAccount = EarnAccountRow
export type VaultRef = { chainId: string; vault: string }

export const vaultRefOf = ({ chainId, address }: Pick<Vault, 'chainId' | 'address'>): VaultRef => ({
  chainId,
  vault: address.toLowerCase(),
})

export async function earnAccountOf(
  db: Queryable,
  userId: string,
  { chainId, vault }: VaultRef,
): Promise<EarnAccount | undefined> {
  const [row] = await query<EarnAccount>(
    db,
    'select * from earn_account where user_id = $1 and chain_id = $2 and vault = $3',
    [userId, chainId, vault],
  )
  return row
}

type CashState = {
  heldUnits: bigint
  version: bigint
  earnAccount: EarnAccount | undefined
  openPositions: number
  /** Whether the position that the deposit goes to has shares. */
  isOpen: boolean
}
type CashRow = { held: string; cash_version: bigint; positions: number; is_open: boolean; is_known: boolean }

/** Reads held cash and account in one snapshot, so that a raised version comes with its raised settled block. */
export async function cashStateOf(
  db: Queryable,
  wallet: AccountRef,
  position: AccountRef,
  { chainId, vault }: VaultRef,
): Promise<CashState> {
  const [row] = await query<CashRow & EarnAccount>(
    db,
    `select coalesce(a.held, 0) as held, coalesce(a.version, 0) as cash_version, e.user_id is not null as is_known, e.*,
       p.positions, coalesce(p.is_open, false) as is_open
     from (select count(*)::integer as positions, bool_or(sub_account = $7) as is_open from account
         where owner = $1 and asset = $6 and has_units) p
       left join account a on a.owner = $1 and a.asset = $2 and a.sub_account = $3
       left join earn_account e on e.user_id = $1 and e.chain_id = $4 and e.vault = $5`,
    [wallet.owner, wallet.asset, wallet.subAccount, chainId, vault, position.asset, position.subAccount],
  )
  const { held, cash_version, positions, is_open, is_known, ...earnAccount } = row!
  return {
    heldUnits: BigInt(held),
    version: BigInt(cash_version),
    earnAccount: is_known ? earnAccount : undefined,
    openPositions: positions,
    isOpen: is_open,
  }
}

/** The delay between a settlement and the comparison with the chain; settlements in quick succession share one. */
const compareAfterSeconds = 5
/** A node lags by seconds; after this time a lower block means a chain other than the one that was settled on. */
const lagToleranceMs = 30_000

/** Returns the lowest block at which a reading of the chain shows the last settlement of the account. */
export const minBlockFor = (account: EarnAccount | undefined, now: Date): bigint =>
  account?.settled_at && now.getTime() - account.settled_at.getTime() < lagToleranceMs
    ? account.settled_block
    : 0n

type Change = {
  positionId: string
  assetsUnits: bigint
  sharesUnits: bigint
  block: bigint
  /** The time at which the position was opened, for its first deposit. */
  createdAt: Date
  now: Date
}

/**
 * Applies the units of a receipt or a comparison; the first deposit opens the position and the account. Both
 * amounts of a deposit are positive, and the shares of a withdrawal are negative.
 */
export const addChange = (
  tx: Tx,
  userId: string,
  { chainId, vault }: VaultRef,
  { positionId, assetsUnits, sharesUnits, block, createdAt, now }: Change,
) =>
  query(
    tx,
    `with counted as (
       insert into earn_account (user_id, chain_id, vault, settled_block, settled_at, next_at)
       values ($1, $2, $3, $4::bigint, $8, $8::timestamptz + make_interval(secs => $10))
       on conflict (user_id, chain_id, vault) do update
         set settled_block = greatest(earn_account.settled_block, excluded.settled_block),
           settled_at = excluded.settled_at, next_at = least(earn_account.next_at, excluded.next_at))
     select earn_position_add($5::uuid, $1::uuid, $2, $3, $6::numeric, $7::numeric, $9::timestamptz)`,
    [
      userId,
      chainId,
      vault,
      block,
      positionId,
      assetsUnits,
      sharesUnits,
      now,
      createdAt,
      compareAfterSeconds,
    ],
  )

/** Raises the version of the account, as an optimistic lock; returns false if another booking came first. */
export async function raiseVersion(
  tx: Tx,
  { user_id, chain_id, vault, version }: Pick<EarnAccount, 'user_id' | 'chain_id' | 'vault' | 'version'>,
): Promise<boolean> {
  const rows = await query(
    tx,
    `update earn_account set version = version + 1, mismatch = null, mismatch_since = null
     where user_id = $1 and chain_id = $2 and vault = $3 and version = $4 returning user_id`,
    [user_id, chain_id, vault, version],
  )
  return rows.length === 1
}

type Freeze = { reason: string; by: string; now: Date }

/** Freezes the account for new deposits, but never for withdrawals; returns false if it was frozen already. */
export async function freezeEarnAccount(
  tx: Tx,
  userId: string,
  { chainId, vault }: VaultRef,
  { reason, by, now }: Freeze,
): Promise<boolean> {
  const rows = await query(
    tx,
    `update earn_account set state = 'frozen', reason = $4, frozen_by = $5, frozen_since = $6, unfrozen_by = null
     where user_id = $1 and chain_id = $2 and vault = $3 and state <> 'frozen' returning user_id`,
    [userId, chainId, vault, reason, by, now],
  )
  return rows.length === 1
}

/** Unfreezes the account; returns false if the account was not frozen. */
export async function unfreezeEarnAccount(
  tx: Tx,
  userId: string,
  { chainId, vault }: VaultRef,
  by: string,
): Promise<boolean> {
  const rows = await query(
    tx,
    `update earn_account set state = 'active', unfrozen_by = $4, mismatch = null, mismatch_since = null
     where user_id = $1 and chain_id = $2 and vault = $3 and state = 'frozen' returning user_id`,
    [userId, chainId, vault, by],
  )
  return rows.length === 1
}

export const dueAccounts = (db: Queryable, { chainId, vault }: VaultRef, now: Date, limit: number) =>
  query<EarnAccount>(
    db,
    `select * from earn_account where chain_id = $1 and vault = $2 and next_at <= $3 order by next_at limit $4`,
    [chainId, vault, now, limit],
  )

type Comparison = { mismatch: bigint | null; since: Date | null; now: Date; nextAt: Date }

export const noteComparison = (
  db: Queryable,
  { user_id, chain_id, vault, version }: EarnAccount,
  { mismatch, since, now, nextAt }: Comparison,
) =>
  query(
    db,
    `update earn_account set mismatch = $5, mismatch_since = $6, compared_at = $7, next_at = $8
     where user_id = $1 and chain_id = $2 and vault = $3 and version = $4`,
    [user_id, chain_id, vault, version, mismatch, since, now, nextAt],
  )

export const compareAgainAt = (db: Queryable, { user_id, chain_id, vault }: EarnAccount, at: Date) =>
  query(db, 'update earn_account set next_at = $4 where user_id = $1 and chain_id = $2 and vault = $3', [
    user_id,
    chain_id,
    vault,
    at,
  ])

export async function frozenCount(db: Queryable, { chainId, vault }: VaultRef): Promise<number> {
  const [row] = await query<{ n: number }>(
    db,
    `select count(*)::integer as n from earn_account where chain_id = $1 and vault = $2 and state = 'frozen'`,
    [chainId, vault],
  )
  return row?.n ?? 0
}
