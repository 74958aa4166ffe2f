import { type Clock, later } from '#kernel/clock.ts'
import { type Queryable, query } from '#store/query.ts'
import type { Payload, RecordStore, Records } from './authorization-server-records.ts'

/**
 * This module stores sessions of browsers at the authorization server. A request that began before the end of its
 * session stores the session again. So each read of a session checks when the person signed in, and whether the session
 * was ended.
 */

type OpenSession = {
  accountId?: string | undefined
  loginTs?: number | undefined
  authorizations?: object | undefined
  authorizationFor(clientId: string, make: true): object
}
export type Sessions = {
  store: RecordStore
  /**
   * Records when a person signed in to the session. Without `atMs` it is the login time of the session, unless a time
   * is recorded already.
   */
  enter(session: OpenSession, atMs?: number): void
  end(uid: string): Promise<void>
}

/** A session ends after this time, however often it is used. */
const longestSessionMs = 30 * 86_400_000
/** The record of an ended session is stored for longer than any session lasts. */
const tombstoneSeconds = 31 * 86_400

type Authorizations = Record<string, { enteredAtMs?: number } | undefined>
/** The session stores the time of the sign-in under this client id, which no client can have. */
const entryName = ' '

const enteredAtMs = ({ authorizations }: { authorizations?: unknown }): number | undefined =>
  (authorizations as Authorizations | undefined)?.[entryName]?.enteredAtMs

type SessionsDeps = { db: Queryable; records: Pick<Records, 'of'>; clock: Clock }

export function createSessions({ db, records, clock }: SessionsDeps): Sessions {
  const stored = records.of('Session')
  const ended = records.of('EndedSession')

  const current = async (payload: Payload | undefined): Promise<Payload | undefined> => {
    if (!payload || typeof payload.accountId !== 'string') return payload
    const [row] = await query<{ access_ended_at: Date | null; is_ended: boolean }>(
      db,
      `select access_ended_at,
         exists (select from oauth_record where model = 'EndedSession' and id = $2) as is_ended
       from person where id = $1`,
      [payload.accountId, payload.uid],
    )
    if (!row || row.is_ended) return undefined
    const enteredAt = enteredAtMs(payload)
    if (enteredAt === undefined) return row.access_ended_at === null ? payload : undefined
    const isOver = later(new Date(enteredAt), longestSessionMs) <= clock.now()
    const wasEnded = row.access_ended_at !== null && enteredAt < row.access_ended_at.getTime()
    return isOver || wasEnded ? undefined : payload
  }

  return {
    store: {
      ...stored,
      find: async (id) => current(await stored.find(id)),
      findByUid: async (uid) => current(await stored.findByUid(uid)),
    },
    enter(session, atMs) {
      const { accountId, loginTs = 0 } = session
      // A session without an account is left alone, because a change would store it.
      if (accountId === undefined || (atMs === undefined && enteredAtMs(session) !== undefined)) return
      const entered = { enteredAtMs: atMs ?? loginTs * 1_000 }
      Object.assign(session.authorizationFor(entryName, true), entered)
    },
    async end(uid) {
      await ended.upsert(uid, {}, tombstoneSeconds)
      await query(db, `delete from oauth_record where model = 'Session' and uid = $1 returning id`, [uid])
    },
  }
}
