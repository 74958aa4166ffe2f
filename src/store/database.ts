import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { backoffMs, withJitter } from '#kernel/async/backoff.ts'
import { type Failpoints, noFailpoints } from '#kernel/failpoint.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import { columnTypes } from './column-types.ts'
import { type Listener, listen } from './notify-listener.ts'
import { isStalePlan, settleAll } from './query.ts'
import { isConflict } from './serialization-conflict.ts'
import { instrument } from './statement-failpoints.ts'
import { isDatabaseUnavailable } from './unavailable.ts'

export type DatabaseOptions = {
  url: string
  /** The address of the server without a pooler, since a pooler does not forward NOTIFY. */
  directUrl?: string
  poolMax: number
  applicationName: string
  connectTimeoutMs?: number
  statementTimeoutMs?: number
  failpoints?: Failpoints
  /** Called when the pool loses an idle connection, which should be logged and is never a reason to exit. */
  onIdleError?: (error: Error) => void
}

/**
 * The connection of an open transaction. The store sends prepared statements on it; features see it as the opaque `Tx`.
 */
export type Transaction = pg.PoolClient & Tx

/**
 * Sends `commit` in the round trip of the last statements. PostgreSQL rolls the transaction back if one of them failed.
 */
export type Commit = () => Promise<void>
export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

export type Database = {
  /** The connections; use `pool.query({ name, text, values })` for frequent statements. */
  readonly pool: pg.Pool
  /** Commits everything that `run` does, or nothing. Retries after a conflict or a stale plan, at most 3 times. */
  transaction<T>(run: (tx: Transaction) => Promise<T>, isolation?: Isolation): Promise<T>
  /**
   * Runs a transaction whose first part is pipelined with the `begin`. If `begin` fails, the first part has run
   * outside a transaction, so it may only read, lock, or make writes that are harmless alone.
   */
  pipelinedTransaction<F, T>(
    first: (tx: Transaction) => Promise<F>,
    run: (tx: Transaction, found: F, commit: Commit) => Promise<T>,
  ): Promise<T>
  listen(options: {
    channels: readonly string[]
    onMessage: (channel: string, payload: string) => void
    /**
     * Called after the first connection and every reconnection. Notifications sent in between are lost, so the callback
     * must wake every waiter.
     */
    onConnected: () => void
  }): Listener
  close(): Promise<void>
}

const retriesMax = 3
const conflictBackoff = { firstMs: 10, maxMs: 40 }
const statementMsMax = 15_000
const connectTimeoutMsDefault = 5_000
const idleInTransactionMsMax = 10_000

export function openDatabase(options: DatabaseOptions): Database {
  const pool = openPool(options)
  const listeners = new Set<Listener>()
  let closing: Promise<void> | undefined
  return {
    pool,
    transaction: (run, isolation) => retry(() => attempt(pool, (client) => begin(client, isolation), run)),
    pipelinedTransaction: (first, run) =>
      retry(() => attempt(pool, async (client) => (await settleAll([begin(client), first(client)]))[1], run)),
    listen(wanted) {
      const { url, directUrl = url, applicationName, connectTimeoutMs = connectTimeoutMsDefault } = options
      const listening = listen({ url: directUrl, applicationName, connectTimeoutMs, ...wanted })
      listeners.add(listening)
      return listening
    },
    close() {
      closing ??= Promise.all([...[...listeners].map((each) => each.close()), pool.end()]).then(() => {})
      return closing
    },
  }
}

function openPool({
  url,
  poolMax,
  applicationName,
  connectTimeoutMs = connectTimeoutMsDefault,
  statementTimeoutMs = statementMsMax,
  onIdleError,
  failpoints = noFailpoints,
}: DatabaseOptions): pg.Pool {
  const settings: pg.PoolConfig & { pipeline: boolean } = {
    connectionString: url,
    max: poolMax,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    // Prepared statements belong to a connection, so a connection is kept through the pause between two requests.
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    // With PgBouncer, list both timeouts in ignore_startup_parameters and set them on the role.
    statement_timeout: statementTimeoutMs,
    // Limits how long a process that is paused inside a transaction can hold row locks.
    idle_in_transaction_session_timeout: idleInTransactionMsMax,
    // The client's limit matters only if the network drops the reply: otherwise the server's limit comes first.
    query_timeout: statementTimeoutMs + 5_000,
    types: columnTypes,
    pipeline: true,
  }
  const pool = new pg.Pool(settings)
  // Errors while the pool closes are expected, for instance if the server stops at the same time.
  pool.on('error', (error) => {
    if (!pool.ending) onIdleError?.(error)
  })
  // The failed query reports a broken connection; without a listener the event `error` would end the process.
  pool.on('connect', (client) => {
    client.on('error', () => {})
    corkWrites(client)
    if (failpoints !== noFailpoints) instrument(client, failpoints)
  })
  return pool
}

type CorkableClient = { connection: { stream: { cork(): void; uncork(): void } } }

/**
 * Sends all statements of one tick in one socket write, because a write costs as much as all other work for a
 * statement.
 */
function corkWrites(client: pg.ClientBase): void {
  const { stream } = (client as unknown as CorkableClient).connection
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  let corked = false
  const corkedQuery = (...args: unknown[]) => {
    if (!corked) {
      corked = true
      stream.cork()
      process.nextTick(() => {
        corked = false
        stream.uncork()
      })
    }
    return query(...args)
  }
  client.query = corkedQuery as typeof client.query
}

async function retry<T>(run: () => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await run()
    } catch (error) {
      if (!(isConflict(error) || isStalePlan(error)) || retries === retriesMax) throw error
      await delay(withJitter(backoffMs(conflictBackoff, retries), systemRandom, 1))
    }
  }
}

const begin = (client: pg.PoolClient, isolation?: Isolation) =>
  client.query(isolation ? `begin isolation level ${isolation}` : 'begin')

async function attempt<F, T>(
  pool: pg.Pool,
  start: (client: Transaction) => Promise<F>,
  run: (tx: Transaction, found: F, commit: Commit) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  let reusable = false
  let committed: Promise<void> | undefined
  const commit = () => {
    committed ??= client.query('commit').then(({ command }) => {
      reusable = true
      // PostgreSQL answers a commit with ROLLBACK if an earlier statement failed, noticed or not.
      if (command !== 'COMMIT')
        throw new Error('The transaction was rolled back: one of its statements failed')
    })
    return committed
  }
  try {
    // The first part is awaited although it is pipelined: after a failed `begin`, each later statement would commit by
    // itself.
    const found = await start(client as Transaction)
    const answer = await run(client as Transaction, found, commit)
    await commit()
    return answer
  } catch (error) {
    reusable ||= !isDatabaseUnavailable(error) && (await rollBack(client))
    throw error
  } finally {
    client.release(!reusable)
  }
}

const rollBack = (client: pg.PoolClient) =>
  client.query('rollback').then(
    () => true,
    () => false,
  )
