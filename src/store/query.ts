import type { CompiledQuery } from 'kysely'
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import pg from 'pg'
import { sha256 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task.ts'
import type { Tables } from './tables.ts'

/** Builds queries and sends none: the same text goes through the pool or through a transaction. */
export const q = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

export type Queryable = Pick<pg.Pool, 'query'> | pg.PoolClient | Tx
type Compilable<Row> = { compile(): CompiledQuery<Row> }

const names = new Map<string, string>()
/** Beyond this many distinct texts a query runs unnamed, so that a generated text can never fill the server's memory. */
const namesMax = 500

function nameOf(text: string): string | undefined {
  const known = names.get(text)
  if (known !== undefined || names.size >= namesMax) return known
  const name = `q${sha256(text).slice(0, 16)}`
  names.set(text, name)
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
  if (names.get(text) === stale) names.set(text, `${stale.slice(0, 17)}_${++renewals}`)
}

/**
 * Sends a text as a named prepared statement: planned once per connection. `waitMs`: how long the answer is waited for,
 * where that is longer than usual.
 */
export async function send<Row extends object>(
  on: Queryable,
  text: string,
  values: unknown[] = [],
  waitMs?: number,
): Promise<Row[]> {
  const name = nameOf(text)
  try {
    const { rows } = await (on as pg.Pool).query<Row & pg.QueryResultRow>({
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
    if (!(on instanceof pg.Pool)) throw error
    return send(on, text, values, waitMs)
  }
}

export async function all<Row extends object>(on: Queryable, query: Compilable<Row>): Promise<Row[]> {
  const { sql, parameters } = query.compile()
  return send<Row>(on, sql, parameters as unknown[])
}

export async function one<Row extends object>(
  on: Queryable,
  query: Compilable<Row>,
): Promise<Row | undefined> {
  return (await all(on, query))[0]
}

/**
 * For work on one transaction that runs side by side: a failure is told only once all of it has ended, since what is
 * sent after the rollback would stand alone and stay.
 */
export async function allEnded<const T extends readonly unknown[]>(
  works: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const failures = (await Promise.allSettled(works)).flatMap((end) =>
    end.status === 'rejected' ? [end.reason as unknown] : [],
  )
  if (failures.length > 0) throw failures.find((failure) => !isConsequence(failure)) ?? failures[0]
  return Promise.all(works)
}

/** What PostgreSQL says to a statement whose transaction has failed before it. */
const isConsequence = (failure: unknown): boolean => (failure as { code?: string } | null)?.code === '25P02'

/** JSON.stringify writes both in lower case: a zero byte, and half of a character that takes two. */
const unfit = /\\u(?:0000|d[89a-f])/

/** A value as jsonb takes it. What a foreign system says may hold text that no column can, and is stored without it. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value)
  if (!unfit.test(text)) return text
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'string' ? each.replaceAll('\0', '\ufffd').toWellFormed() : each,
  )
}

/** The handle that features receive for a transaction in flight, and back. */
export const asTx = (client: pg.PoolClient): Tx => client as unknown as Tx
