import type pg from 'pg'
import type { Tx } from '#kernel/task.ts'
import { isConflict } from '#store/conflict.ts'

export type Transact = <T>(run: (tx: Tx) => Promise<T>) => Promise<T>
export type Pipelined = <F, T>(
  first: (tx: Tx) => Promise<F>,
  run: (tx: Tx, found: F, commit: () => Promise<void>) => Promise<T>,
) => Promise<T>
/** The ways to the database: a statement of its own, or several in one transaction. */
export type Transactions = { pool: pg.Pool; run: Transact; pipelined: Pipelined }

/** Repeats a statement that stands alone: the server gave it up for another's sake, and nothing of it was done. */
export async function retryOnConflict<T>(run: () => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await run()
    } catch (error) {
      if (!isConflict(error) || retries === retriesMax) throw error
    }
  }
}
const retriesMax = 3
