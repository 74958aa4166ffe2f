import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Failpoints, noFailpoints } from '#kernel/failpoint.ts'
import type { Tx } from '#kernel/task.ts'
import { columnTypes } from './column-types.ts'
import { isConflict } from './conflict.ts'
import { instrument } from './instrument.ts'
import { type Listener, listen } from './listener.ts'
import { isStalePlan, settleAll } from './query.ts'
import { isDatabaseUnavailable } from './unavailable.ts'

export type DatabaseOptions = {
  url: string
  /** A pooler does not pass NOTIFY on; this one goes past it. */
  directUrl?: string
  poolMax: number
  applicationName: string
  connectTimeoutMs?: number
  statementTimeoutMs?: number
  failpoints?: Failpoints
  /** Connections that the pool lost while nobody used them: worth a log line, never an exit. */
  onIdleError?: (error: Error) => void
}

/** The connection between `begin` and `commit`: for prepared statements here, and opaque to the features. */
export type Transaction = pg.PoolClient & Tx

/** For a last part that shares the round trip of the `commit`: refused with whatever was sent before it. */
export type Commit = () => Promise<void>
export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

export type Database = {
  /** Hot statements: `pool.query({ name, text, values })`. */
  readonly pool: pg.Pool
  /** Commits what `run` did, or nothing. A conflict or a stale plan is run again, at most 3 times. */
  transaction<T>(run: (tx: Transaction) => Promise<T>, isolation?: Isolation): Promise<T>
  /**
   * The same, with a first part that shares the round trip of the `begin`. Where that was refused, the first part has
   * stood alone: it only reads, locks, or writes what does no harm.
   */
  pipelinedTransaction<F, T>(
    first: (tx: Transaction) => Promise<F>,
    run: (tx: Transaction, found: F, commit: Commit) => Promise<T>,
  ): Promise<T>
  listen(options: {
    channels: readonly string[]
    onMessage: (channel: string, payload: string) => void
    /** Also after every reconnection: what was sent meanwhile is lost, so wake every waiter. */
    onConnected: () => void
  }): Listener
  close(): Promise<void>
}

const retriesMax = 3
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
  statementTimeoutMs = 15_000,
  onIdleError,
  failpoints = noFailpoints,
}: DatabaseOptions): pg.Pool {
  const settings: pg.PoolConfig & { pipeline: boolean } = {
    connectionString: url,
    max: poolMax,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    // Prepared statements live in the connection, so it is kept for longer than a pause between two requests.
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    // PgBouncer wants both of these in its ignore_startup_parameters; set them on the role there.
    statement_timeout: statementTimeoutMs,
    // A process that is paused inside a transaction must not keep its row locks from those that take over.
    idle_in_transaction_session_timeout: idleInTransactionMsMax,
    // Only for a network that swallows the answer: otherwise the server's own limit is first.
    query_timeout: statementTimeoutMs + 5_000,
    types: columnTypes,
    // Statements that need not know each other's answers share a round trip.
    pipeline: true,
  }
  const pool = new pg.Pool(settings)
  // A server that is being stopped together with the pool cuts what is just saying goodbye.
  pool.on('error', (error) => {
    if (!pool.ending) onIdleError?.(error)
  })
  // A checked-out connection that breaks tells its query; the event alone would end the process.
  pool.on('connect', (client) => {
    client.on('error', () => {})
    corkWrites(client)
    if (failpoints !== noFailpoints) instrument(client, failpoints)
  })
  return pool
}

type CorkableClient = { connection: { stream: { cork(): void; uncork(): void } } }

/** Statements of one moment leave in one write: each write of its own costs as much as everything else about them. */
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
      // Two that collided would collide again in step.
      await delay(Math.random() * 10 * 2 ** retries)
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
      // PostgreSQL answers a commit with ROLLBACK when a statement failed before it, whether or not that was noticed.
      if (command !== 'COMMIT')
        throw new Error('The transaction was rolled back: one of its statements failed')
    })
    return committed
  }
  try {
    // Awaited although statements may share a round trip: after a refused `begin` the next one would commit alone.
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
