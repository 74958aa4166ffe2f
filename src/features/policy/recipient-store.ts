import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import type { TransferRecipientRow } from '#store/tables/identity.ts'

export type RecipientRow = TransferRecipientRow

/** Returns the recipients of a user, the oldest first. */
export const recipientsOf = (db: Queryable, userId: string): Promise<RecipientRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('transfer_recipient')
      .selectAll()
      .where('user_id', '=', userId)
      .orderBy('recipient_id'),
  )

export const effectiveRecipientsOf = async (db: Queryable, userId: string, now: Date) =>
  (await recipientsOf(db, userId))
    .filter((row) => row.effective_at <= now)
    .map(({ chain_id: chainId, address, agents }) => ({ chainId, address, agents }))

export const insertRecipient = (db: Queryable, row: RecipientRow) =>
  fetchAll(db, builder.insertInto('transfer_recipient').values(row))

/** Deletes a recipient and returns its row; undefined if the user has no such recipient. */
export const deleteRecipient = async (
  db: Queryable,
  userId: string,
  recipientId: string,
): Promise<RecipientRow | undefined> => {
  const [row] = await query<RecipientRow>(
    db,
    'delete from transfer_recipient where user_id = $1 and recipient_id = $2 returning *',
    [userId, recipientId],
  )
  return row
}

/** Raises the policy's version, so that the acceptance checks again the tasks that earlier limits admitted. */
export const raiseVersion = (db: Queryable, userId: string) =>
  query(db, 'update policy set version = version + 1 where user_id = $1', [userId])

export const deletePendingRecipients = (db: Queryable, userId: string, now: Date) =>
  query(db, 'delete from transfer_recipient where user_id = $1 and effective_at > $2', [userId, now])
