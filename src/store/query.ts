import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely'
import pg from 'pg'
import { sha256 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { Tables } from './tables.ts'

/** Builds queries without sending them: the same query can run on the pool or in a transaction. */
export const builder = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

export const isPool = (db: Queryable): db is pg.Pool => db instanceof pg.Pool

export type Queryable = Pick<pg.Pool, 'query'> | pg.PoolClient | Tx
type Compilable<Row> = { compile(): CompiledQuery<Row> }

const statementNames = new Map<string, string>()
/** Beyond this many distinct texts queries run unnamed, so that generated texts cannot exhaust the server's memory. */
const statementNamesMax = 500

function statementName(text: string): string | undefined {
  const known = statementNames.get(text)
  if (known !== undefined || statementNames.size >= statementNamesMax) return known
  const name = `q${sha256(text).slice(0, 16)}`
  statementNames.set(text, name)
  return name
}

/**
 * Returns whether a prepared statement failed because it selects all columns of a table to which a newer release has
 * added one. The statement did not run.
 */
export function isStalePlan(error: unknown): boolean {
  const { code, routine } = (error ?? {}) as { code?: string; routine?: string }
  return code === '0A000' && routine === 'RevalidateCachedQuery'
}

let renewals = 0
/** Gives a statement a new name, under which it is prepared again on every connection. */
function renew(text: string, stale: string): void {
  if (statementNames.get(text) === stale) statementNames.set(text, `${stale.slice(0, 17)}_${++renewals}`)
}

/** Runs a text as a named prepared statement, planned once per connection. `waitMs` is a higher time limit. */
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
    // The transaction failed with the statement, and is retried as a whole.
    if (!isPool(db)) throw error
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
 * For concurrent statements of one transaction: reports a failure only after all of them have ended, because a
 * statement sent after the rollback would commit by itself.
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

/** PostgreSQL's error for a statement in a transaction that failed before. */
const isConsequence = (failure: unknown): boolean => (failure as { code?: string } | null)?.code === '25P02'

/** JSON.stringify escapes a zero byte and an unpaired surrogate, and jsonb rejects these escapes. */
const unstorable = /\\u(?:0000|d[89a-f])/

/** Makes JSON text that jsonb accepts: characters from foreign systems that it cannot store are replaced. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value)
  if (!unstorable.test(text)) return text
  return JSON.stringify(value, (_, each: unknown) => {
    if (typeof each === 'string') return storable(each)
    if (!isRecord(each) || Object.keys(each).every((name) => storable(name) === name)) return each
    return Object.fromEntries(Object.entries(each).map(([name, field]) => [storable(name), field]))
  })
}

const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()
