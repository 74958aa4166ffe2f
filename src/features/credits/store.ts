import { builder, fetchAll, type Queryable } from '#store/query.ts'

export const expiriesOf = (db: Queryable, userId: string) =>
  fetchAll(
    db,
    builder.selectFrom('credit_bucket').select(['sub_account', 'expires_at']).where('user_id', '=', userId),
  )

export const addExpiry = (db: Queryable, userId: string, subAccount: string, expiresAt: Date) =>
  fetchAll(
    db,
    builder
      .insertInto('credit_bucket')
      .values({ user_id: userId, sub_account: subAccount, expires_at: expiresAt }),
  )
