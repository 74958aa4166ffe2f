import { createLru } from '#kernel/async/create-lru.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { WalletRow } from '#store/tables/identity.ts'

export type { WalletRow }
export type WalletKind = WalletRow['kind']
/** The public part of a wallet, for code outside custody. */
export type Wallet = Pick<WalletRow, 'id' | 'kind' | 'address'>

export const readWallets = (db: Queryable, userId: string): Promise<Wallet[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('wallet')
      .select(['id', 'kind', 'address'])
      .where('user_id', '=', userId)
      .orderBy('kind'),
  )

export const kindsPerUser = 2

/** Wallets never change after creation, so a full set is cached. */
export function createCachedWallets(): (db: Queryable, userId: string) => Promise<Wallet[]> {
  const cache = createLru<string, Wallet[]>(10_000)
  return async (db, userId) => {
    const cached = cache.get(userId)
    if (cached) return cached
    const found = await readWallets(db, userId)
    if (found.length === kindsPerUser) cache.set(userId, found)
    return found
  }
}

/** Returns the address of a user's wallet of one family. */
export type AddressOf = (userId: string) => Promise<string>

export const createAddressReader =
  (kind: WalletKind, walletsOf: (userId: string) => Promise<Wallet[]>): AddressOf =>
  async (userId) =>
    (await walletsOf(userId)).find((wallet) => wallet.kind === kind)!.address

export const sealedWallet = (
  db: Queryable,
  userId: string,
  kind: WalletKind,
): Promise<WalletRow | undefined> =>
  fetchOne(
    db,
    builder.selectFrom('wallet').selectAll().where('user_id', '=', userId).where('kind', '=', kind),
  )

/** Stores a wallet; of two concurrent inserts for one user the first wins, and the other is dropped unused. */
export const addWallet = async (db: Queryable, row: WalletRow): Promise<void> => {
  await fetchAll(
    db,
    builder
      .insertInto('wallet')
      .values(row)
      .onConflict((conflict) => conflict.columns(['user_id', 'kind']).doNothing()),
  )
}

/** Returns the kind under which the agent key of a venue is sealed, in place of a wallet's kind. */
export const agentKind = (venue: string) => `agent:${venue}`
export type SealedKey = Omit<WalletRow, 'kind'> & { kind: string }

const sealedColumns = 'id, user_id, address, ciphertext, wrapped_dek, kek_id, version, created_at'

const noUuid = '00000000-0000-0000-0000-000000000000'

/** Returns keys under other key-encryption keys by id, so that a row that fails to rewrap is read only once. */
export const keysWrappedByOthers = (
  db: Queryable,
  kekId: string,
  { after, limit }: { after: string | null; limit: number },
): Promise<SealedKey[]> =>
  query<SealedKey>(
    db,
    `(select kind, ${sealedColumns} from wallet
       where kek_id <> $1 and id > coalesce($2::uuid, '${noUuid}') order by id limit $3)
     union all
     (select 'agent:' || venue as kind, ${sealedColumns} from agent_wallet
       where kek_id <> $1 and id > coalesce($2::uuid, '${noUuid}') order by id limit $3)
     order by id limit $3`,
    [kekId, after, limit],
  )

/** A loose index scan takes one step per distinct id instead of reading every row. */
export const keyEncryptionKeysInUse = (db: Queryable): Promise<{ kek_id: string }[]> => {
  const idsOf = (table: string) => `(with recursive id as (
      (select kek_id from ${table} order by kek_id limit 1)
      union all
      select (select t.kek_id from ${table} t where t.kek_id > id.kek_id order by t.kek_id limit 1)
        from id where id.kek_id is not null
    ) select kek_id from id where kek_id is not null)`
  return query(db, `${idsOf('wallet')} union ${idsOf('agent_wallet')} order by kek_id`)
}

/** Returns keys of wallets and of agents alike. */
export const keysUnderKek = (db: Queryable, kekId: string, limit: number): Promise<SealedKey[]> =>
  query<SealedKey>(
    db,
    `(select kind, ${sealedColumns} from wallet where kek_id = $1 order by id limit $2)
     union all
     (select 'agent:' || venue as kind, ${sealedColumns} from agent_wallet where kek_id = $1 order by id limit $2)`,
    [kekId, limit],
  )

/** Replaces the wrapped data key, unless another process has rewrapped the row in the meantime. */
export const replaceDek = async (db: Queryable, row: SealedKey, wrapped: Uint8Array, kekId: string) => {
  const table = row.kind.startsWith(agentKind('')) ? 'agent_wallet' : 'wallet'
  const text = `update ${table} set wrapped_dek = $2, kek_id = $3 where id = $1 and kek_id = $4 and wrapped_dek = $5 returning id`
  const rows = await query<{ id: string }>(db, text, [row.id, wrapped, kekId, row.kek_id, row.wrapped_dek])
  return rows.length === 1
}
