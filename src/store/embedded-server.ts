import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { backoffMs } from '#kernel/async/backoff.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { type Binaries, findBinaries, packagedNative } from './embedded/binaries.ts'
import {
  abortLaunch,
  addressOf,
  hasEnded,
  initCluster,
  type LaunchedServer,
  launchServer,
  majorOf,
  postmasterPid,
  type Settings,
  stopServer,
  superuser,
  systemIdentifier,
} from './embedded/cluster.ts'
import {
  type ClusterPaths,
  confirmIdentity,
  errorCode,
  errorMessage,
  prepareClusterPaths,
  serverAccount,
} from './embedded/cluster-paths.ts'
import { StoreRefusal } from './operator-error.ts'
import { isDatabaseUnavailable } from './unavailable.ts'

export type EmbeddedPostgres = {
  /** The URL is evaluated on each read, because on Windows a restart may change the port. */
  readonly url: string
  readonly version: string
  close(): Promise<void>
}

export type EmbeddedOptions = {
  dataDir: string
  progress?: (line: string) => void
  /** Turn `fsync` off only if the data may be lost, as in tests. */
  fsync?: boolean
  settings?: Settings
  native?: string | null
  /** Gives up a start that has not succeeded yet. */
  cancelled?: AbortSignal
  /** Ends a server that is slow to stop by an immediate shutdown, from which its next start recovers. */
  forced?: AbortSignal
}

type ServerConnection = { client: pg.Client; version: string }
type LaunchContext = {
  paths: ClusterPaths
  options: EmbeddedOptions
  progress: (line: string) => void
  stopped: AbortSignal
  forced: AbortSignal | undefined
  binaries?: Binaries
}

const relaunchBackoff = { firstMs: 50, maxMs: 5_000 }
const database = 'portico'
const windows = process.platform === 'win32'
/** Every instance that uses the server shares this lock; an instance that gets it exclusively is the last one. */
const instanceLock = 5_065_702
const noAnswerMsMax = 60_000
const recoveryMsMax = 15 * 60_000
const launchesMax = 8
const releaseMsMax = 3_000

/**
 * A PostgreSQL server on a unix socket. It is created on first use, adopted if it outlived the process that
 * started it, restarted if it dies, and stopped by the last instance that closes.
 */
export async function embeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const progress = options.progress ?? (() => {})
  const { cancelled, forced } = options
  const stop = new AbortController()
  const paths = prepareClusterPaths(options.dataDir, serverAccount())
  const start: LaunchContext = { paths, options, progress, stopped: stop.signal, forced }
  let connection = await connectOrLaunch({ ...start, stopped: cancelled ?? stop.signal })
  let relaunch: Promise<void> | undefined
  const reconnectOnEnd = ({ client }: ServerConnection) => {
    client.once('end', () => {
      if (stop.signal.aborted) return
      progress('The database server ended; restarting it')
      relaunch = reconnect()
    })
  }
  const reconnect = async () => {
    for (let failures = 0; !stop.signal.aborted; failures += 1) {
      try {
        connection = await connectOrLaunch(start)
        reconnectOnEnd(connection)
        return
      } catch (error) {
        if (!stop.signal.aborted) progress(`The database server does not start: ${errorMessage(error)}`)
      }
      await delay(backoffMs(relaunchBackoff, failures), undefined, { signal: stop.signal }).catch(() => {})
    }
  }
  reconnectOnEnd(connection)

  let closing: Promise<void> | undefined
  return {
    get url() {
      return urlOf(paths)
    },
    get version() {
      return connection.version
    },
    close() {
      closing ??= (async () => {
        stop.abort()
        await relaunch
        await release(start, connection)
      })()
      return closing
    },
  }
}

/** Every iteration first tries to attach, so it does not matter when or by which process the server was started. */
async function connectOrLaunch(start: LaunchContext): Promise<ServerConnection> {
  const { paths, stopped, progress } = start
  let launched: LaunchedServer | undefined
  let launches = 0
  let launchAfterMs = 0
  let deadlineMs = performance.now() + noAnswerMsMax
  try {
    for (let waitMs = 5; ; waitMs = Math.min(waitMs * 1.5, 100)) {
      if (stopped.aborted) throw new Error('The start was cancelled')
      const major = majorOf(paths)
      confirmIdentity(paths, major === undefined ? undefined : systemIdentifier(paths))
      const answer = major === undefined ? 'absent' : await attach(start)
      if (typeof answer !== 'string') return answer
      if (answer === 'busy') deadlineMs = Math.max(deadlineMs, performance.now() + recoveryMsMax)
      const idle = !launched || hasEnded(launched)
      if (performance.now() > deadlineMs || (idle && answer === 'absent' && launches >= launchesMax)) {
        throw noAnswerError(paths, launched)
      }
      if (answer === 'absent' && idle && performance.now() >= launchAfterMs) {
        start.binaries ??= await chooseBinaries(start, major)
        if (major === undefined) await createCluster(start, start.binaries)
        progress(`Starting PostgreSQL ${start.binaries.version}`)
        launched = await launchServer(paths, start.binaries, settingsOf(start.options))
        launches += 1
        launchAfterMs = performance.now() + 50 * 2 ** launches
        waitMs = 5
      }
      await delay(waitMs)
    }
  } catch (error) {
    if (launched) await abortLaunch(launched, start.forced)
    throw error
  }
}

const chooseBinaries = ({ paths, options, progress }: LaunchContext, major: number | undefined) =>
  findBinaries({
    account: paths.account,
    major,
    native: options.native === undefined ? packagedNative() : (options.native ?? undefined),
    progress,
  })

async function createCluster(
  { paths, options, progress, stopped }: LaunchContext,
  binaries: Binaries,
): Promise<void> {
  progress(`Creating the database in ${paths.data}`)
  await initCluster(paths, binaries, { durable: options.fsync !== false, stopped })
  confirmIdentity(paths, systemIdentifier(paths))
}

const settingsOf = ({ fsync, settings }: EmbeddedOptions): Settings => ({
  ...(fsync === false && { fsync: 'off', full_page_writes: 'off' }),
  ...settings,
})

/** `busy`: the server starts, recovers or stops. `closed`: it accepts no connection now. `absent`: no reply. */
async function attach({
  paths,
  options,
}: LaunchContext): Promise<ServerConnection | 'busy' | 'closed' | 'absent'> {
  const address = addressOf(paths)
  if (!address) return 'absent'
  const client = new pg.Client({
    ...address,
    user: superuser,
    database: 'postgres',
    ssl: false,
    application_name: 'portico launcher',
    connectionTimeoutMillis: 10_000,
  })
  // Only the end of the connection matters; without a listener its event `error` would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ id: string; version: string; fsync: string }>(
      `select system_identifier::text as id, current_setting('server_version') as version,
       current_setting('fsync') as fsync from pg_control_system()`,
    )
    const found = rows[0]
    if (found?.id !== systemIdentifier(paths)) {
      throw new StoreRefusal(
        `The server at ${address.host} serves a database other than ${paths.data}. Stop it and start again.`,
      )
    }
    if (found.fsync === 'off' && options.fsync !== false) {
      throw new StoreRefusal(
        `The server of ${paths.data} runs with fsync off, which can lose money: stop it (kill -INT ` +
          `${postmasterPid(paths)}) and start again.`,
      )
    }
    await client.query('select pg_advisory_lock_shared($1)', [instanceLock])
    await ensureDatabase(client)
    return { client, version: found.version.split(' ')[0] as string }
  } catch (error) {
    await client.end().catch(() => {})
    const code = errorCode(error)
    if (code === '57P03') return 'busy'
    if (code === '57P01' || code === '53300') return 'closed'
    if (code === 'EACCES' || !isDatabaseUnavailable(error)) throw error
    return 'absent'
  }
}

async function ensureDatabase(client: pg.Client): Promise<void> {
  const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [database])
  if (rowCount) return
  await client.query(`create database ${database}`).catch((error) => {
    // Another instance has created the database first. The error code depends on the timing.
    if (errorCode(error) !== '42P04' && errorCode(error) !== '23505') throw error
  })
}

/** Releases the shared lock first: otherwise two instances that close at once would both fail to get it exclusively. */
async function releaseInstance({ client }: ServerConnection): Promise<boolean> {
  await client.query('select pg_advisory_unlock_shared($1)', [instanceLock])
  const { rows } = await client.query<{ last: boolean }>('select pg_try_advisory_lock($1) as last', [
    instanceLock,
  ])
  return rows[0]?.last === true
}

/** Stops the server if this is its last instance, or if the server does not answer and therefore serves no instance. */
async function release(
  start: LaunchContext,
  connection: ServerConnection,
  { isLast = false } = {},
): Promise<void> {
  const { paths, progress } = start
  const { client } = connection
  try {
    if ((await withTimeLimit(releaseInstance(connection), releaseMsMax)) === false) return
    await stopOwn(start)
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error
    // Perhaps only this connection has ended: a second connection finds out whether the server still serves other
    // instances.
    if (isLast || postmasterPid(paths) === undefined) return
    const retry = await withTimeLimit(attach(start), releaseMsMax)
    if (typeof retry === 'object') return release(start, retry, { isLast: true })
    progress('The database server does not answer, and is stopped')
    await stopOwn(start)
  } finally {
    await client.end().catch(() => {})
  }
}

async function stopOwn(start: LaunchContext): Promise<void> {
  const { paths, progress, forced } = start
  if (windows) start.binaries ??= await chooseBinaries(start, majorOf(paths))
  if (!(await stopServer(paths, { forced, pgCtl: start.binaries?.pgCtl })))
    progress('The database server did not stop within the time limit')
}

function urlOf(paths: ClusterPaths): string {
  const address = addressOf(paths)
  if (!address) throw new StoreRefusal(`The server of ${paths.data} is not running.`)
  const { host, port, password } = address
  // Port and sslmode are explicit, because PGPORT and PGSSLMODE of the environment would override missing
  // ones.
  return password
    ? `postgresql://${superuser}:${password}@${host}:${port}/${database}?sslmode=disable`
    : `postgresql:///${database}?host=${encodeURIComponent(host)}&port=${port}&user=${superuser}&sslmode=disable`
}

function noAnswerError(paths: ClusterPaths, launched: LaunchedServer | undefined): StoreRefusal {
  const pid = postmasterPid(paths)
  const failureText = launched?.failureText().split('\n').slice(-3).join(' ')
  return new StoreRefusal(
    `The database server of ${paths.data} does not answer${pid ? ` though process ${pid} runs` : ''}: ` +
      `${failureText || 'it reported no reason'} (see ${paths.log}).`,
  )
}
