import { type Config, ConfigRefused } from '#config.ts'
import { readIsReplicated } from '#durable/time/replication.ts'
import type { Failpoints } from '#kernel/failpoint.ts'
import type { Log } from '#kernel/log.ts'
import { release } from '#release.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { migrate } from '#store/migrate.ts'
import { query } from '#store/query.ts'

type StoreDeps = {
  config: Config
  log: Log
  printLine: (line: string) => void
  databaseUrl: string
  failpoints: Failpoints
}

export async function openStore(
  { config, log, printLine, databaseUrl, failpoints }: StoreDeps,
  parts: AsyncDisposableStack,
) {
  const directUrl = config.DATABASE_DIRECT_URL ?? databaseUrl
  const onIdleError = (error: Error) => log.warn({ error }, 'idle database connection lost')
  const settings = { url: databaseUrl, directUrl, failpoints, onIdleError }
  // One connection renews leases while all connections of the other pools are busy. With a standby two more are needed:
  // one reads the state of the standbys, and one waits in a commit that tests them.
  const poolMax = config.DATABASE_DURABILITY === 'standby' ? 3 : 1
  const heartbeats = openDatabase({ ...settings, poolMax, applicationName: 'portico heartbeat' })
  parts.defer(() => heartbeats.close())
  // Nothing is written before this check: without the standby a commit would wait for ever.
  if (config.DATABASE_DURABILITY === 'standby') await assertReplicated(heartbeats)
  await migrate({ url: directUrl, release, progress: printLine })
  const database = openDatabase({ ...settings, poolMax: config.DATABASE_POOL, applicationName: 'portico' })
  parts.defer(() => database.close())
  // Signatures are made inside transactions: with a separate pool they cannot deadlock with transactions that wait.
  const custody = openDatabase({ ...settings, poolMax: 4, applicationName: 'portico custody' })
  parts.defer(() => custody.close())
  return { database, custody, heartbeats }
}

async function assertReplicated({ pool }: Database): Promise<void> {
  if (await readIsReplicated(pool)) return
  throw new ConfigRefused([
    'DATABASE_DURABILITY: standby, but no synchronous standby acknowledges commits: none streams; or commits wait for more than 3 seconds, for a further standby or one that is frozen or paused; or synchronous_commit is neither on nor remote_apply; or the role lacks pg_read_all_stats',
  ])
}

/**
 * The tasks and nonces of a database belong to one local world and are wrong for any other, so the start is refused.
 * Returns the message for the operator.
 */
export async function findWorldMismatch(
  { pool }: Stores['database'],
  worldId: string,
): Promise<string | undefined> {
  await query(pool, `insert into database_binding (key, value) values ('world', $1) on conflict do nothing`, [
    worldId,
  ])
  const [row] = await query<{ value: string }>(pool, `select value from database_binding where key = 'world'`)
  if (row?.value === worldId) return undefined
  return `The database belongs to the local world ${row?.value}, but the data folder holds the world ${worldId}. Start with a matching pair, or remove both: the data folder, and the database if it is not inside it.`
}

export type Stores = Awaited<ReturnType<typeof openStore>>
