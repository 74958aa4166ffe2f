import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Binaries, findBinaries, packagedNative } from './embedded/binaries.ts'
import {
  addressOf,
  initCluster,
  type Launched,
  launchServer,
  majorOf,
  postmasterPid,
  type Settings,
  stopServer,
  superuser,
  systemIdentifier,
} from './embedded/cluster.ts'
import { codeOf, confirmIdentity, type Place, placeFor, serverAccount, text } from './embedded/place.ts'
import { StoreRefusal } from './refusal.ts'
import { isDatabaseUnavailable } from './unavailable.ts'

export type EmbeddedPostgres = {
  /** Read anew after a restart on Windows, where the port may change. */
  readonly url: string
  readonly version: string
  close(): Promise<void>
}

export type EmbeddedOptions = {
  dataDir: string
  progress?: (line: string) => void
  /** Off only where the data may be lost, as in tests. */
  fsync?: boolean
  settings?: Settings
  /** The folder `native` of the binary package; null looks on PATH only. */
  native?: string | null
}

type Hold = { client: pg.Client; version: string }
type Start = {
  place: Place
  options: EmbeddedOptions
  progress: (line: string) => void
  stopped: AbortSignal
  binaries?: Binaries
}

const database = 'portico'
const windows = process.platform === 'win32'
/** Every instance that uses the server holds it shared; the one that gets it exclusively is the last. */
const instanceLock = 5_065_702
const silenceMsMax = 60_000
const recoveryMsMax = 15 * 60_000
const launchesMax = 8
const stopMsMax = 10_000

/**
 * A PostgreSQL server of our own on a unix socket, made on first use, adopted when it outlived the process that
 * started it, started again when it dies under us, and stopped by the last instance that leaves.
 */
export async function embeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const progress = options.progress ?? (() => {})
  const stop = new AbortController()
  const place = placeFor(options.dataDir, serverAccount())
  const start: Start = { place, options, progress, stopped: stop.signal }
  let hold = await takeHold(start)
  let renewal: Promise<void> | undefined
  const watch = ({ client }: Hold) => {
    client.once('end', () => {
      if (stop.signal.aborted) return
      progress('The database server went away; starting it again')
      renewal = renew()
    })
  }
  const renew = async () => {
    for (let waitMs = 50; !stop.signal.aborted; waitMs = Math.min(waitMs * 2, 5_000)) {
      try {
        hold = await takeHold(start)
        watch(hold)
        return
      } catch (error) {
        if (!stop.signal.aborted) progress(`The database server does not start: ${text(error)}`)
      }
      await delay(waitMs, undefined, { signal: stop.signal }).catch(() => {})
    }
  }
  watch(hold)

  let closing: Promise<void> | undefined
  return {
    get url() {
      return urlOf(place)
    },
    get version() {
      return hold.version
    },
    close() {
      closing ??= (async () => {
        stop.abort()
        await renewal
        await leave(start, hold)
      })()
      return closing
    },
  }
}

/** Every turn begins with the attempt to adopt, so it does not matter who started the server, or when. */
async function takeHold(start: Start): Promise<Hold> {
  const { place, stopped, progress } = start
  let launched: Launched | undefined
  let launches = 0
  let launchAfterMs = 0
  let giveUpAtMs = performance.now() + silenceMsMax
  try {
    for (let waitMs = 5; ; waitMs = Math.min(waitMs * 1.5, 100)) {
      if (stopped.aborted) throw new Error('The start was called off')
      const major = majorOf(place)
      confirmIdentity(place, major === undefined ? undefined : systemIdentifier(place))
      const answer = major === undefined ? 'absent' : await attach(start)
      if (typeof answer !== 'string') return answer
      if (answer === 'busy') giveUpAtMs = Math.max(giveUpAtMs, performance.now() + recoveryMsMax)
      const idle = !launched || launched.process.exitCode !== null || launched.process.signalCode !== null
      if (performance.now() > giveUpAtMs || (idle && answer === 'absent' && launches >= launchesMax)) {
        throw neverAnswered(place, launched)
      }
      if (answer === 'absent' && idle && performance.now() >= launchAfterMs) {
        start.binaries ??= await choose(start, major)
        if (major === undefined) await create(start, start.binaries)
        progress(`Starting PostgreSQL ${start.binaries.version}`)
        launched = await launchServer(place, start.binaries, settingsOf(start.options))
        launches += 1
        launchAfterMs = performance.now() + 50 * 2 ** launches
        waitMs = 5
      }
      await delay(waitMs)
    }
  } catch (error) {
    if (launched) await callOff(launched)
    throw error
  }
}

/** Stops a server that was being started again when its user closed. */
async function callOff({ process: server }: Launched): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = once(server, 'exit')
  server.kill('SIGINT')
  const limit = new AbortController()
  await Promise.race([ended, delay(stopMsMax, undefined, { signal: limit.signal }).catch(() => {})])
  limit.abort()
}

const choose = ({ place, options, progress }: Start, major: number | undefined) =>
  findBinaries({
    account: place.account,
    major,
    native: options.native === undefined ? packagedNative() : (options.native ?? undefined),
    progress,
  })

async function create({ place, options, progress }: Start, binaries: Binaries): Promise<void> {
  progress(`Creating the database in ${place.data}`)
  await initCluster(place, binaries, options.fsync !== false)
  confirmIdentity(place, systemIdentifier(place))
}

const settingsOf = ({ fsync, settings }: EmbeddedOptions): Settings => ({
  ...(fsync === false && { fsync: 'off', full_page_writes: 'off' }),
  ...settings,
})

/** `busy`: it starts, recovers or stops. `closed`: it is there but lets nobody in now. `absent`: nobody answers. */
async function attach({ place, options }: Start): Promise<Hold | 'busy' | 'closed' | 'absent'> {
  const address = addressOf(place)
  if (!address) return 'absent'
  const client = new pg.Client({
    ...address,
    user: superuser,
    database: 'postgres',
    ssl: false,
    application_name: 'portico launcher',
    connectionTimeoutMillis: 10_000,
  })
  // The end of the connection is what counts; without a listener its error would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ id: string; version: string; fsync: string }>(
      `select system_identifier::text as id, current_setting('server_version') as version,
       current_setting('fsync') as fsync from pg_control_system()`,
    )
    const found = rows[0]
    if (found?.id !== systemIdentifier(place)) {
      throw new StoreRefusal(`The server at ${address.host} serves another database than ${place.data}.`)
    }
    if (found.fsync === 'off' && options.fsync !== false) {
      throw new StoreRefusal(
        `The server of ${place.data} runs with fsync off, which can lose money: stop it (kill -INT ` +
          `${postmasterPid(place)}) and start again.`,
      )
    }
    await client.query('select pg_advisory_lock_shared($1)', [instanceLock])
    await ensureDatabase(client)
    return { client, version: found.version.split(' ')[0] as string }
  } catch (error) {
    await client.end().catch(() => {})
    const code = codeOf(error)
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
    // Another instance was faster; which of the two codes it is depends on how much faster.
    if (codeOf(error) !== '42P04' && codeOf(error) !== '23505') throw error
  })
}

/** Our share is given back first: two that leave together would otherwise hinder each other, and nobody would stop it. */
async function leave(start: Start, { client }: Hold): Promise<void> {
  const { place, progress } = start
  try {
    await client.query('select pg_advisory_unlock_shared($1)', [instanceLock])
    const { rows } = await client.query<{ last: boolean }>('select pg_try_advisory_lock($1) as last', [
      instanceLock,
    ])
    if (!rows[0]?.last) return
    if (windows) start.binaries ??= await choose(start, majorOf(place))
    if (!(await stopServer(place, start.binaries?.pgCtl)))
      progress('The database server did not stop in time')
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error
  } finally {
    await client.end().catch(() => {})
  }
}

function urlOf(place: Place): string {
  const address = addressOf(place)
  if (!address) throw new StoreRefusal(`The server of ${place.data} does not run.`)
  const { host, port, password } = address
  // Port and sslmode are spelled out, for PGPORT and PGSSLMODE in the environment would speak otherwise.
  return password
    ? `postgresql://${superuser}:${password}@${host}:${port}/${database}?sslmode=disable`
    : `postgresql:///${database}?host=${encodeURIComponent(host)}&port=${port}&user=${superuser}&sslmode=disable`
}

function neverAnswered(place: Place, launched: Launched | undefined): StoreRefusal {
  const pid = postmasterPid(place)
  const complaint = launched?.complaint().split('\n').slice(-3).join(' ')
  return new StoreRefusal(
    `The database server of ${place.data} does not answer${pid ? ` though process ${pid} runs` : ''}: ` +
      `${complaint || 'it said nothing'} (see ${place.log}).`,
  )
}
