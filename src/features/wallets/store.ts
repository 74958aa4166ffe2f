import { all, one, type Queryable, q, send } from '#store/query.ts'
import type { WalletRow } from '#store/tables/identity.ts'

export type { WalletRow }
export type WalletKind = WalletRow['kind']
/** What anybody but custody may know of a wallet. */
export type Wallet = Pick<WalletRow, 'id' | 'kind' | 'address'>

export const walletsOf = (on: Queryable, userId: string): Promise<Wallet[]> =>
  all(
    on,
    q.selectFrom('wallet').select(['id', 'kind', 'address']).where('user_id', '=', userId).orderBy('kind'),
  )

export const sealedWallet = (
  on: Queryable,
  userId: string,
  kind: WalletKind,
): Promise<WalletRow | undefined> =>
  one(on, q.selectFrom('wallet').selectAll().where('user_id', '=', userId).where('kind', '=', kind))

/** Of two instances that provision one user, the first wins and the other's key is dropped unused. */
export const addWallet = async (on: Queryable, row: WalletRow): Promise<void> => {
  await all(
    on,
    q
      .insertInto('wallet')
      .values(row)
      .onConflict((conflict) => conflict.columns(['user_id', 'kind']).doNothing()),
  )
}

/** In the order of ids, so that a row which cannot be rewrapped is passed and not met again. */
export const walletsOutsideKek = (
  on: Queryable,
  kekId: string,
  { after, most }: { after: string | null; most: number },
): Promise<WalletRow[]> =>
  all(
    on,
    q
      .selectFrom('wallet')
      .selectAll()
      .where('kek_id', '<>', kekId)
      .$if(after !== null, (some) => some.where('id', '>', after as string))
      .orderBy('id')
      .limit(most),
  )

/** Changes nothing when the row was rewrapped by somebody else in the meantime. */
export const replaceDek = async (on: Queryable, row: WalletRow, wrapped: Uint8Array, kekId: string) => {
  const text = `update wallet set wrapped_dek = $2, kek_id = $3 where id = $1 and kek_id = $4 and wrapped_dek = $5 returning id`
  const rows = await send<{ id: string }>(on, text, [row.id, wrapped, kekId, row.kek_id, row.wrapped_dek])
  return rows.length === 1
}
