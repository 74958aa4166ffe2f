import type pg from 'pg'
import type { JsonObject } from '#kernel/json.ts'
import { query } from '#store/query.ts'

/** The commits of this instance since the heartbeat before the last one: a failover may have lost them. */

type Acknowledged = { version: number; userId: string }

/** Further ones are not compared: the chains show what was sent of them. */
const commitsMax = 50_000
const namedMax = 100

export function createAcknowledged(pool: pg.Pool) {
  let recent = new Map<string, Acknowledged>()
  let earlier = new Map<string, Acknowledged>()
  return {
    add({ id, version, user_id: userId }: { id: string; version: number; user_id: string }): void {
      if (recent.size < commitsMax) recent.set(id, { version: Number(version), userId })
    },
    /** Runs after each heartbeat that found the database to be the known one. */
    turn(): void {
      earlier = recent
      recent = new Map()
    },
    /** Tasks that are gone, or that went back to an earlier step. */
    async findLost(): Promise<JsonObject | undefined> {
      const all = new Map([...earlier, ...recent])
      if (all.size === 0) return undefined
      const rows = await query<{ id: string }>(
        pool,
        `select a.id from unnest($1::uuid[], $2::integer[]) as a (id, version)
           where not exists (select from task t where t.id = a.id and t.version >= a.version)`,
        [[...all.keys()], [...all.values()].map(({ version }) => version)],
      )
      if (rows.length === 0) return undefined
      const users = new Set(rows.map(({ id }) => all.get(id)!.userId))
      return {
        count: rows.length,
        tasks: rows.slice(0, namedMax).map(({ id }) => id),
        users: [...users].slice(0, namedMax),
      }
    },
  }
}
