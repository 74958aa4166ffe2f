import type pg from 'pg'
import type { Tx } from '#kernel/task.ts'

export type Transact = <T>(run: (tx: Tx) => Promise<T>) => Promise<T>
/** The two ways to the database: a statement of its own, or several in one transaction. */
export type Transactions = { pool: pg.Pool; run: Transact }
