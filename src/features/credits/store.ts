import { all, type Queryable, q } from '#store/query.ts'

export const expiriesOf = (on: Queryable, userId: string) =>
  all(on, q.selectFrom('credit_bucket').select(['book', 'expires_at']).where('user_id', '=', userId))

export const addExpiry = (on: Queryable, userId: string, book: string, expiresAt: Date) =>
  all(on, q.insertInto('credit_bucket').values({ user_id: userId, book, expires_at: expiresAt }))
