import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import { subAccountOf } from './buckets.ts'

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

export const hasSignupCredits = async (db: Queryable, userId: string): Promise<boolean> => {
  const text = 'select 1 as known from credit_bucket where user_id = $1 and sub_account = $2'
  return (await query(db, text, [userId, subAccountOf('signup')])).length > 0
}

type Proof = { proof: Uint8Array; userId: string; now: Date }
/** Claims a proof for first credits; returns true for exactly one of several concurrent callers. */
export const claimProof = async (db: Queryable, { proof, userId, now }: Proof): Promise<boolean> => {
  const text =
    'insert into signup_grant (proof, user_id, granted_at) values ($1, $2, $3) on conflict do nothing returning 1 as claimed'
  return (await query(db, text, [proof, userId, now])).length > 0
}
