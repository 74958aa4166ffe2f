import { builder, fetchAll, type Queryable } from '#store/query.ts'

export const expiriesOf = (db: Queryable, userId: string) =>
  fetchAll(
    db,
    builder.selectFrom('credit_bucket').select(['book', 'expires_at']).where('user_id', '=', userId),
  )

export const addExpiry = (db: Queryable, userId: string, book: string, expiresAt: Date) =>
  fetchAll(db, builder.insertInto('credit_bucket').values({ user_id: userId, book, expires_at: expiresAt }))
