import type { Transact } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import type { ActScope } from '#kernel/contract/caller.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import { contestedClients, contestGrant, isContested } from './contested-grants.ts'

/** This module ends grants. What an app has set up ends with its last grant, in one transaction. */

/** Ends what apps have set up, in the transaction that ends their access; the returned function runs after it. */
export type EndApps = (tx: Tx, ended: EndedApps) => Promise<() => void>
/**
 * Whose access ends: one app or, without `clientId`, all apps. In the second case, what the person set up on pages of
 * the gateway ends too.
 */
export type EndedApps = { personId: string; clientId: string | undefined }

export type Grants = {
  end(grantId: string, act?: ActScope): Promise<void>
  endApp(personId: string, clientId: string): Promise<void>
  endAll(personId: string, act?: ActScope): Promise<void>
  /** Records that a refresh token was used twice at about the same time, so somebody else may have it. */
  contest(grantId: string): Promise<void>
  isContested(grantId: string): Promise<boolean>
  /** Ends contested grants of an app, or of clients with its registered name, and what these clients have set up. */
  endContested(personId: string, clientId: string): Promise<void>
  /** Ends some of the expired grants; returns true if more are left. */
  endExpired(): Promise<boolean>
}

const expiredBatch = 100

export type GrantsDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  endApps: EndApps
  /** Makes every instance forget the tokens that it has verified. */
  onRevoked: () => void
}

type LockedGrant = { id: string; client_id: string; is_live: boolean; is_contested: boolean }

export function createGrants({ db, transact, clock, endApps, onRevoked }: GrantsDeps): Grants {
  /** Locks grants in the order of their ids, so that the later of two transactions waits and sees which is the last. */
  const lock = (tx: Tx, personId: string, clientId: string | null): Promise<LockedGrant[]> =>
    query(
      tx,
      `select id, payload->>'clientId' as client_id, expires_at > $3 as is_live,
         contested_at is not null as is_contested from oauth_record
       where model = 'Grant' and account_id = $1 and ($2::text is null or payload->>'clientId' = $2)
       order by id for update`,
      [personId, clientId, clock.now()],
    )
  const remove = (tx: Tx, ids: readonly string[]) =>
    query(
      tx,
      `delete from oauth_record where (model = 'Grant' and id = any($1)) or grant_id = any($1) returning id`,
      [ids],
    )

  const endAppWithLast = (tx: Tx, app: EndedApps, remaining: readonly LockedGrant[]) => {
    const isConnected = remaining.some((each) => each.is_live)
    return isConnected ? () => {} : endApps(tx, app)
  }

  type EndOne = { isExpiredOnly?: boolean }
  const endOne = async (tx: Tx, grantId: string, { isExpiredOnly = false }: EndOne = {}) => {
    const [grant] = await query<{ person_id: string | null; client_id: string | null }>(
      tx,
      `select account_id as person_id, payload->>'clientId' as client_id from oauth_record
       where model = 'Grant' and id = $1`,
      [grantId],
    )
    const { person_id: personId = null, client_id: clientId = null } = grant ?? {}
    if (personId === null || clientId === null) {
      await remove(tx, [grantId])
      return () => {}
    }
    const all = await lock(tx, personId, clientId)
    // The grant may have been renewed before the lock.
    if (isExpiredOnly && all.some((each) => each.is_live && each.id === grantId)) return () => {}
    await remove(tx, [grantId])
    const remaining = all.filter((each) => each.id !== grantId)
    return endAppWithLast(tx, { personId, clientId }, remaining)
  }

  /** `run` ends grants in a transaction; it returns undefined if it has ended none, so that nobody is notified. */
  const change = async (
    act: ActScope | undefined,
    run: (tx: Tx) => Promise<(() => void) | undefined>,
    onEnded: () => void = onRevoked,
  ): Promise<void> => {
    const announce = act ? await run(act.tx) : await transact(run)
    if (!announce) return
    const afterCommit = () => {
      announce()
      onEnded()
    }
    if (act) act.afterCommit(afterCommit)
    else afterCommit()
  }

  return {
    end: (grantId, act) => change(act, (tx) => endOne(tx, grantId)),
    endApp: (personId, clientId) =>
      change(undefined, async (tx) => {
        const grants = await lock(tx, personId, clientId)
        if (grants.length === 0) return undefined
        await remove(
          tx,
          grants.map(({ id }) => id),
        )
        return endApps(tx, { personId, clientId })
      }),
    endAll: (personId, act) =>
      change(act, async (tx) => {
        await lock(tx, personId, null)
        // A request under way may store its session again, so the time of the end is recorded for later checks.
        await query(tx, 'update person set access_ended_at = $2 where id = $1 returning id', [
          personId,
          clock.now(),
        ])
        await query(tx, 'delete from oauth_record where account_id = $1 returning id', [personId])
        return endApps(tx, { personId, clientId: undefined })
      }),
    contest: (grantId) => contestGrant(db, grantId, clock.now()),
    isContested: (grantId) => isContested(db, grantId),
    async endContested(personId, clientId) {
      const clients = await contestedClients(db, personId, clientId)
      if (clients.length === 0) return
      await change(undefined, async (tx) => {
        const locked = await lock(tx, personId, null)
        const contested = locked.filter((each) => each.is_contested && clients.includes(each.client_id))
        await remove(
          tx,
          contested.map(({ id }) => id),
        )
        const announcements: (() => void)[] = []
        // A thief of a refresh token may have set up some of the clients' things, so all of them end.
        for (const each of clients) announcements.push(await endApps(tx, { personId, clientId: each }))
        return () => {
          for (const announce of announcements) announce()
        }
      })
    },
    async endExpired() {
      const expired = await query<{ id: string }>(
        db,
        `select id from oauth_record where model = 'Grant' and expires_at < $1 order by expires_at limit $2`,
        [clock.now(), expiredBatch],
      )
      // The tokens of these grants have expired too, so no instance has to forget any.
      for (const { id } of expired)
        await change(
          undefined,
          (tx) => endOne(tx, id, { isExpiredOnly: true }),
          () => {},
        )
      return expired.length === expiredBatch
    },
  }
}
