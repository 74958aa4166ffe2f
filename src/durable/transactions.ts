import type pg from 'pg'
import type { Tx } from '#kernel/task/task.ts'
import { isConflict } from '#store/serialization-conflict.ts'

export type Transact = <T>(run: (tx: Tx) => Promise<T>) => Promise<T>
export type Pipelined = <F, T>(
  first: (tx: Tx) => Promise<F>,
  run: (tx: Tx, found: F, commit: () => Promise<void>) => Promise<T>,
) => Promise<T>
export type Transactions = { pool: pg.Pool; run: Transact; pipelined: Pipelined }

/** Retries a single statement after a serialization failure or deadlock, which the server rolled back. */
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
