import type { CompiledQuery } from 'kysely'
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import pg from 'pg'
import { sha256 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task.ts'
import type { Tables } from './tables.ts'

/** Builds queries and sends none: the same text goes through the pool or through a transaction. */
export const builder = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

export type Queryable = Pick<pg.Pool, 'query'> | pg.PoolClient | Tx
type Compilable<Row> = { compile(): CompiledQuery<Row> }

const statementNames = new Map<string, string>()
/** Beyond this many distinct texts a query runs unnamed, so that a generated text can never fill the server's memory. */
const statementNamesMax = 500

function statementName(text: string): string | undefined {
  const known = statementNames.get(text)
  if (known !== undefined || statementNames.size >= statementNamesMax) return known
  const name = `q${sha256(text).slice(0, 16)}`
  statementNames.set(text, name)
  return name
}

/** A newer release has added a column to a table of which every column is read. The statement was not run. */
export function isStalePlan(error: unknown): boolean {
  const { code, routine } = (error ?? {}) as { code?: string; routine?: string }
  return code === '0A000' && routine === 'RevalidateCachedQuery'
}

let renewals = 0
/** Under another name it is prepared anew on every connection. */
function renew(text: string, stale: string): void {
  if (statementNames.get(text) === stale) statementNames.set(text, `${stale.slice(0, 17)}_${++renewals}`)
}

/**
 * Sends a text as a named prepared statement: planned once per connection. `waitMs`: how long the answer is waited for,
 * where that is longer than usual.
 */
export async function query<Row extends object>(
  db: Queryable,
  text: string,
  values: unknown[] = [],
  waitMs?: number,
): Promise<Row[]> {
  const name = statementName(text)
  try {
    const { rows } = await (db as pg.Pool).query<Row & pg.QueryResultRow>({
      text,
      values,
      ...(name && { name }),
      ...(waitMs !== undefined && { query_timeout: waitMs }),
    } as pg.QueryConfig)
    return rows
  } catch (error) {
    if (name === undefined || !isStalePlan(error)) throw error
    renew(text, name)
    // A transaction has failed with it, and is run again as a whole.
    if (!(db instanceof pg.Pool)) throw error
    return query(db, text, values, waitMs)
  }
}

export async function fetchAll<Row extends object>(
  db: Queryable,
  compilable: Compilable<Row>,
): Promise<Row[]> {
  const { sql, parameters } = compilable.compile()
  return query<Row>(db, sql, parameters as unknown[])
}

export async function fetchOne<Row extends object>(
  db: Queryable,
  compilable: Compilable<Row>,
): Promise<Row | undefined> {
  return (await fetchAll(db, compilable))[0]
}

/**
 * For work on one transaction that runs side by side: a failure is told only once all of it has ended, since what is
 * sent after the rollback would stand alone and stay.
 */
export async function settleAll<const T extends readonly unknown[]>(
  promises: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const failures = (await Promise.allSettled(promises)).flatMap((end) =>
    end.status === 'rejected' ? [end.reason as unknown] : [],
  )
  if (failures.length > 0) throw failures.find((failure) => !isConsequence(failure)) ?? failures[0]
  return Promise.all(promises)
}

/** What PostgreSQL says to a statement whose transaction has failed before it. */
const isConsequence = (failure: unknown): boolean => (failure as { code?: string } | null)?.code === '25P02'

/** JSON.stringify writes both in lower case: a zero byte, and half of a character that takes two. */
const unstorable = /\\u(?:0000|d[89a-f])/

/** A value as jsonb takes it. What a foreign system says may hold text that no column can, and is stored without it. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value)
  if (!unstorable.test(text)) return text
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'string' ? each.replaceAll('\0', '\ufffd').toWellFormed() : each,
  )
}

/** The handle that features receive for a transaction in flight, and back. */
export const asTx = (client: pg.PoolClient): Tx => client as unknown as Tx
