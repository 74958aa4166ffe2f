import type pg from 'pg'
import type { JsonObject } from '#kernel/wire/json.ts'
import { query } from '#store/query.ts'

/** The commits of this instance since the heartbeat before the last one, which a failover may have lost. */

type Acknowledged = { version: number; userId: string }
/** A committed act, known by its idempotency key; an act that came without a key has an internal key of its own. */
export type AcknowledgedAct = { userId: string; key: string }
type Commits = { tasks: Map<string, Acknowledged>; acts: AcknowledgedAct[] }

/**
 * The most commits that are remembered. What the tasks beyond this number have sent is found by the comparison with the
 * chains.
 */
const commitsMax = 50_000
const namedMax = 100

export function createAcknowledged(pool: pg.Pool) {
  const nothing = (): Commits => ({ tasks: new Map(), acts: [] })
  let recent = nothing()
  let earlier = nothing()
  return {
    add({ id, version, user_id: userId }: { id: string; version: number; user_id: string }): void {
      if (recent.tasks.size < commitsMax) recent.tasks.set(id, { version: Number(version), userId })
    },
    addAct(act: AcknowledgedAct): void {
      if (recent.acts.length < commitsMax) recent.acts.push(act)
    },
    /**
     * Forgets the commits from before the previous heartbeat. It runs after each heartbeat whose reply shows that no
     * commit was lost.
     */
    turn(): void {
      earlier = recent
      recent = nothing()
    },
    /** Returns the tasks that are gone or went back to an earlier version, and the users of acts whose key is gone. */
    async findLost(): Promise<JsonObject | undefined> {
      const all = new Map([...earlier.tasks, ...recent.tasks])
      const acts = [...earlier.acts, ...recent.acts]
      if (all.size + acts.length === 0) return undefined
      const rows = await query<{ id: string }>(
        pool,
        `select a.id from unnest($1::uuid[], $2::integer[]) as a (id, version)
           where not exists (select from task t where t.id = a.id and t.version >= a.version)`,
        [[...all.keys()], [...all.values()].map(({ version }) => version)],
      )
      const lostActs = await query<{ userId: string }>(
        pool,
        `select a.user_id as "userId" from unnest($1::uuid[], $2::text[]) as a (user_id, key)
           where not exists (select from idempotency i where i.user_id = a.user_id and i.key = a.key)`,
        [acts.map(({ userId }) => userId), acts.map(({ key }) => key)],
      )
      if (rows.length + lostActs.length === 0) return undefined
      const users = new Set([...rows.map(({ id }) => all.get(id)!), ...lostActs].map(({ userId }) => userId))
      return {
        count: rows.length + lostActs.length,
        tasks: rows.slice(0, namedMax).map(({ id }) => id),
        users: [...users].slice(0, namedMax),
      }
    },
  }
}
