/** The rows of a database that were inserted or changed while something ran. */
import { type Queryable, query } from '#store/query.ts'

/** A heartbeat of the instance writes here at a time of its own; no request does. */
const heartbeatTables = ['instance', 'database_witness']

export type WrittenRows = {
  /** By table, of committed transactions but for heartbeats; a row that was also removed is not among them. */
  during<T>(run: () => Promise<T>): Promise<{ result: T; rows: Readonly<Record<string, number>> }>
}

export async function writtenRows(db: Queryable): Promise<WrittenRows> {
  const tables = await query<{ name: string }>(
    db,
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname = 'public' and c.relname <> all($1) order by 1`,
    [heartbeatTables],
  )
  const counts = tables.map(
    ({ name }) =>
      `select '${name}' as name, count(*)::integer as rows from "${name}" where xmin::text::bigint >= $1`,
  )
  return {
    async during(run) {
      // Transactions from now on have this number or a later one.
      const [next] = await query<{ id: string }>(
        db,
        'select pg_snapshot_xmax(pg_current_snapshot())::text as id',
      )
      const result = await run()
      const found = await query<{ name: string; rows: number }>(
        db,
        `select * from (${counts.join(' union all ')}) t where rows > 0`,
        [next!.id],
      )
      return { result, rows: Object.fromEntries(found.map(({ name, rows }) => [name, rows])) }
    },
  }
}

export const totalOf = (rows: Readonly<Record<string, number>>): number =>
  Object.values(rows).reduce((sum, each) => sum + each, 0)
