/**
 * Databases for tests: every caller gets one of its own, copied from a template that is migrated once.
 * The runner calls `startTestCluster()` once, passes `url` on to its children as PORTICO_TEST_DATABASE_URL and calls
 * `stop()` in the end. A test process without that variable starts or joins a server of its own in the folder for
 * temporary files; the last process that leaves stops it, and the next one finds it warm. With DATABASE_URL set, that
 * server is used in either case and nothing is started; its role must be allowed to create databases.
 */
import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { embeddedPostgres } from '#store/embedded-server.ts'
import { migrate, readMigrations } from '#store/migrate.ts'

export type TestDatabase = { url: string; drop(): Promise<void>; [Symbol.asyncDispose](): Promise<void> }
export type TestCluster = { url: string; stop(): Promise<void> }

const templateLock = 5_065_704
/** The next test of the same file usually asks at once. */
const stopAfterIdleMs = 300
const host = hash(hostname()).slice(0, 6)
const ownDatabaseName = new RegExp(`^portico_test_${host}_(\\d+)_`)
const settings = {
  max_connections: '300',
  autovacuum: 'off',
  max_wal_size: '256MB',
  // A copied template then costs no full checkpoint of everything else.
  checkpoint_timeout: '1h',
}

/** Once per run; throws when the database does not start. */
export async function startTestCluster(progress?: (line: string) => void): Promise<TestCluster> {
  const given = process.env.DATABASE_URL
  if (given) {
    await withAdmin(given, sweepDatabases)
    await prepareTemplate(given)
    return { url: given, stop: async () => {} }
  }
  await sweepRuns()
  const folder = mkdtempSync(join(tmpdir(), `portico-test-run-${process.pid}-`))
  if (process.getuid?.() === 0) chmodSync(folder, 0o711)
  const server = await embeddedPostgres({
    dataDir: folder,
    fsync: false,
    settings,
    ...(progress && { progress }),
  })
  const stop = async () => {
    await server.close()
    removeCluster(folder)
  }
  try {
    await prepareTemplate(server.url)
  } catch (error) {
    await stop()
    throw error
  }
  return { url: server.url, stop }
}

/** A migrated database for one caller; return it with `drop`, or hold it with `await using`. */
export const testDatabase = (): Promise<TestDatabase> => newDatabase(prepareTemplate)

/** A copy of a database that nobody is connected to, as it is now. */
export const copyOfDatabase = (url: string): Promise<TestDatabase> =>
  newDatabase(async () => new URL(url).pathname.slice(1))

async function newDatabase(templateOn: (serverUrl: string) => Promise<string>): Promise<TestDatabase> {
  const server = await serverOfThisProcess()
  try {
    const template = await templateOn(server.url)
    const name = `portico_test_${host}_${process.pid}_${randomBytes(5).toString('hex')}`
    await withAdmin(server.url, (admin) => admin.query(`create database ${name} template ${template}`))
    let dropped: Promise<void> | undefined
    const drop = () => {
      dropped ??= withAdmin(server.url, (admin) =>
        admin.query(`drop database if exists ${name} with (force)`),
      )
        .then(() => {})
        .finally(server.release)
      return dropped
    }
    return { url: withDatabase(server.url, name), drop, [Symbol.asyncDispose]: drop }
  } catch (error) {
    await server.release()
    throw error
  }
}

type Server = { url: string; release(): Promise<void> }

let sharedServer: { users: number; started: ReturnType<typeof embeddedPostgres> } | undefined

async function serverOfThisProcess(): Promise<Server> {
  const given = process.env.PORTICO_TEST_DATABASE_URL ?? process.env.DATABASE_URL
  if (given) return { url: given, release: async () => {} }
  const mine = sharedServer ?? {
    users: 0,
    started: embeddedPostgres({ dataDir: sharedFolder(), fsync: false, settings }),
  }
  sharedServer = mine
  mine.users += 1
  const server = await mine.started.catch((error) => {
    sharedServer = undefined
    throw error
  })
  return {
    url: server.url,
    release: async () => {
      mine.users -= 1
      setTimeout(() => {
        if (mine.users > 0 || sharedServer !== mine) return
        sharedServer = undefined
        server.close()
      }, stopAfterIdleMs)
    },
  }
}

/** One per checkout and account, so that the files of one `node --test` share it. */
function sharedFolder(): string {
  const key = hash(
    `${realpathSync(import.meta.dirname)} ${process.getuid?.()} ${process.platform}-${process.arch}`,
  )
  const folder = join(tmpdir(), `portico-test-${key.slice(0, 12)}`)
  mkdirSync(folder, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 })
  return folder
}

const preparedTemplates = new Map<string, Promise<string>>()

/** The name of the template of the current migrations, created when this server has none yet. */
function prepareTemplate(url: string): Promise<string> {
  const migrations = readMigrations()
  const template = `portico_template_${hash(migrations.map(({ name, checksum }) => name + checksum).join()).slice(0, 16)}`
  const key = `${url} ${template}`
  const known = preparedTemplates.get(key)
  if (known) return known
  const made = withAdmin(url, async (admin) => {
    const present = () => admin.query('select 1 from pg_database where datname = $1', [template])
    if ((await present()).rowCount) return template
    await admin.query('select pg_advisory_lock($1)', [templateLock])
    if ((await present()).rowCount) return template
    await sweepDatabases(admin)
    const draft = `${template}_draft`
    await admin.query(`drop database if exists ${draft} with (force)`)
    await admin.query(
      `create database ${draft} template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'`,
    )
    await migrate({ url: withDatabase(url, draft) })
    await admin.query(`alter database ${draft} with allow_connections false`)
    await admin.query(`alter database ${draft} rename to ${template}`)
    return template
  })
  preparedTemplates.set(key, made)
  made.catch(() => preparedTemplates.delete(key))
  return made
}

/** Databases of killed processes of this machine, and templates of changed migrations. */
async function sweepDatabases(admin: pg.Client): Promise<void> {
  const { rows } = await admin.query<{ name: string }>('select datname as name from pg_database')
  const orphans = rows.filter(({ name }) => {
    const pid = ownDatabaseName.exec(name)?.[1]
    return pid !== undefined && !isAlive(Number(pid))
  })
  // Only a superuser may ask for the age; on another's server the templates stay.
  const old = await admin
    .query<{ name: string }>(
      `select datname as name from pg_database where datname like 'portico\\_template\\_%'
         and (pg_stat_file('base/' || oid || '/PG_VERSION', true)).modification < now() - interval '24 hours'`,
    )
    .catch(() => ({ rows: [] }))
  for (const { name } of [...orphans, ...old.rows])
    await admin.query(`drop database if exists ${name} with (force)`)
}

async function withAdmin<T>(url: string, run: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: withDatabase(url, 'postgres') })
  admin.on('error', () => {})
  await admin.connect()
  try {
    return await run(admin)
  } finally {
    await admin.end()
  }
}

function withDatabase(url: string, database: string): string {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.href
}

/** Servers of runs that were killed: stopped and removed by the next run. */
async function sweepRuns(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const pid = Number(/^portico-test-run-(\d+)-/.exec(name)?.[1])
    if (!(pid > 0) || isAlive(pid)) continue
    const folder = join(tmpdir(), name)
    try {
      await stopOrphan(folder)
      removeCluster(folder)
    } catch {
      // Owned by another account, or being removed by another run at this moment.
    }
  }
}

async function stopOrphan(folder: string): Promise<void> {
  const file = join(serverFolder(folder), 'data', 'postmaster.pid')
  const pidOf = () => {
    try {
      return Number(readFileSync(file, 'utf8').split('\n')[0])
    } catch {
      return 0
    }
  }
  const pid = pidOf()
  if (!(pid > 0) || !isAlive(pid)) return
  process.kill(pid, 'SIGINT')
  for (let turn = 0; turn < 500 && pidOf() === pid; turn++) await delay(10)
}

/** The folder of the embedded server: outside of the data folder where root runs and the data folder is private. */
export function serverFolder(dataDir: string): string {
  const { home } = JSON.parse(readFileSync(join(dataDir, 'postgres.json'), 'utf8')) as { home: string }
  return resolve(dataDir, home)
}

function removeCluster(folder: string): void {
  rmSync(serverFolder(folder), { recursive: true, force: true })
  rmSync(folder, { recursive: true, force: true })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM'
  }
}

function hash(value: string): string {
  return createHash('sha256').update(value).digest('hex')
}
