import { createHash } from 'node:crypto'
import { type Clock, later } from '#kernel/clock.ts'
import type { ActScope } from '#kernel/contract/caller.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'
import type { OAuthRecordRow } from '#store/tables/oauth.ts'
import type { Grants } from './grant-revocation.ts'

/** This module stores the records of the authorization server, by model and id; every record expires. */

export type Payload = Record<string, unknown>
export type RecordStore = {
  /**
   * Stores a record. `opener` is the network address that opened it; beyond a number of records of one opener, the
   * oldest are deleted.
   */
  upsert(id: string, payload: Payload, expiresInSeconds?: number, opener?: string): Promise<void>
  find(id: string): Promise<Payload | undefined>
  findByUid(uid: string): Promise<Payload | undefined>
  /** Marks a record as used; returns false if it was used before. Of several concurrent uses one succeeds. */
  consume(id: string): Promise<boolean>
  destroy(id: string): Promise<void>
  revokeByGrantId(grantId: string): Promise<void>
}
export type Records = {
  of(model: string, on?: Queryable): RecordStore
  revokeAccount(accountId: string, act?: ActScope): Promise<void>
  revokeGrant(grantId: string, act?: ActScope): Promise<void>
  hasGrant(grantId: string): Promise<boolean>
}
const dayMs = 86_400_000
/** How long a registration is stored before anybody signs in with it, and how long a used client may be idle. */
const unusedClientMs = dayMs
const idleClientMs = 90 * dayMs
const longestMs = 365 * dayMs

/**
 * At most this many used refresh tokens of a grant are stored, so that a second use is recognised. A second use of an
 * older one is refused without further consequences.
 */
const usedTokensMax = 100

/** The most sign-ins that an address has begun and not ended; the next one ends the oldest of them. */
const openedMax = 20

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)

type RecordsDeps = {
  db: Queryable
  clock: Clock
  grants: Grants
}

export function createRecords({ db, clock, grants }: RecordsDeps): Records {
  const lifeMs = (model: string, seconds: number | undefined): number =>
    seconds === undefined ? (model === 'Client' ? unusedClientMs : longestMs) : seconds * 1_000

  const payloadOf = (row: Pick<OAuthRecordRow, 'payload' | 'consumed_at'> | undefined) =>
    row && {
      ...row.payload,
      ...(row.consumed_at && { consumed: row.consumed_at.getTime() / 1_000 }),
    }

  const findBy = async (on: Queryable, model: string, column: 'id' | 'uid', value: string) =>
    payloadOf(
      await fetchOne(
        on,
        builder
          .selectFrom('oauth_record')
          .select(['payload', 'consumed_at'])
          .where('model', '=', model)
          .where(column, '=', value)
          .where('expires_at', '>', clock.now()),
      ),
    )

  const keepClient = (on: Queryable, clientId: string) =>
    query(
      on,
      `update oauth_record set expires_at = $2 where model = 'Client' and id = $1 and expires_at < $3 returning id`,
      // The expiry of a client is moved at most once a day.
      [clientId, later(clock.now(), idleClientMs), later(clock.now(), idleClientMs - dayMs)],
    )

  /** Deletes old used refresh tokens, so that a grant refreshed for months keeps no more rows than a new one. */
  const forgetUsed = (on: Queryable, id: string) =>
    query(
      on,
      `delete from oauth_record where model = 'RefreshToken' and id in (
         select id from oauth_record where model = 'RefreshToken' and consumed_at is not null
           and grant_id = (select grant_id from oauth_record where model = 'RefreshToken' and id = $1)
         order by consumed_at desc offset ${usedTokensMax})
       returning id`,
      [id],
    )

  const endOldest = (on: Queryable, model: string, openedBy: Buffer) =>
    query(
      on,
      `delete from oauth_record where model = $1 and id in (
         select id from oauth_record where model = $1 and opened_by = $2
         order by created_at desc, id offset ${openedMax})
       returning id`,
      [model, openedBy],
    )

  const of = (model: string, on: Queryable = db): RecordStore => ({
    async upsert(id, payload, expiresInSeconds, opener) {
      const now = clock.now()
      const openedBy = opener === undefined ? null : createHash('sha256').update(opener).digest()
      await query(
        on,
        `insert into oauth_record (model, id, payload, grant_id, uid, account_id, created_at, expires_at, opened_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (model, id) do update set payload = excluded.payload, grant_id = excluded.grant_id,
           uid = excluded.uid, account_id = excluded.account_id, expires_at = excluded.expires_at
         returning id`,
        [
          model,
          id,
          JSON.stringify(payload),
          text(payload.grantId),
          text(payload.uid),
          text(payload.accountId),
          now,
          later(now, lifeMs(model, expiresInSeconds)),
          openedBy,
        ],
      )
      if (openedBy) await endOldest(on, model, openedBy)
      const clientId = text(payload.clientId)
      if ((model === 'Grant' || model === 'RefreshToken') && clientId) await keepClient(on, clientId)
    },
    find: (id) => findBy(on, model, 'id', id),
    findByUid: (uid) => findBy(on, model, 'uid', uid),
    async consume(id) {
      const rows = await query(
        on,
        `update oauth_record set consumed_at = $3 where model = $1 and id = $2 and consumed_at is null returning id`,
        [model, id, clock.now()],
      )
      if (rows.length === 1 && model === 'RefreshToken') await forgetUsed(on, id)
      return rows.length === 1
    },
    async destroy(id) {
      if (model === 'Grant') return grants.end(id)
      await query(on, 'delete from oauth_record where model = $1 and id = $2 returning id', [model, id])
    },
    async revokeByGrantId(grantId) {
      await query(on, 'delete from oauth_record where model = $1 and grant_id = $2 returning id', [
        model,
        grantId,
      ])
    },
  })

  return {
    of,
    revokeGrant: grants.end,
    revokeAccount: grants.endAll,
    async hasGrant(grantId) {
      return (await of('Grant').find(grantId)) !== undefined
    },
  }
}
