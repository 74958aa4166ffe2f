import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { StoreRefusal } from './operator-error.ts'

/** `name` is `<area>/<file>`: the order of areas may change, but the name of a migration may not. */
export type Migration = { area: string; number: number; name: string; sql: string; checksum: string }

/** The key of this lock is the same in every release, so that old and new instances exclude each other. */
const migrationLock = 5_065_703
const serverVersionMin = 150_000
/** DDL that waits for a lock blocks every later reader, so it gives up, lets them pass and tries again. */
const ddlLockTimeoutMs = 4_000
const ddlAttemptsMax = 10

export const migrationsFolder = fileURLToPath(new URL('./migrations', import.meta.url))

/**
 * Reads `<nn>-<area>/<nnnn>_<words>.sql` in the order of execution: areas by their prefix, because an area may
 * refer to earlier ones, and the files of an area by number.
 */
export function readMigrations(folder = migrationsFolder): Migration[] {
  const migrations = visibleNames(folder).flatMap((areaFolder) => {
    const area = /^\d\d-([a-z]+)$/.exec(areaFolder)?.[1]
    if (!area) throw new StoreRefusal(`The migrations folder ${areaFolder} is not named 01-<area>.`)
    const path = join(folder, areaFolder)
    return visibleNames(path).map((file) => readMigration(area, path, file))
  })
  const known = new Map<string, string>()
  for (const migration of migrations) {
    const earlier = known.get(idOf(migration))
    if (earlier)
      throw new StoreRefusal(`The migrations ${earlier} and ${migration.name} have the same number.`)
    known.set(idOf(migration), migration.name)
  }
  return migrations
}

const visibleNames = (folder: string) =>
  readdirSync(folder)
    .filter((name) => !name.startsWith('.'))
    .sort()

function readMigration(area: string, folder: string, file: string): Migration {
  const number = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1])
  if (!number) throw new StoreRefusal(`The migration ${area}/${file} is not named 0001_<words>.sql.`)
  // A checkout on Windows may convert line endings, which does not change the migration.
  const sql = readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n')
  const checksum = createHash('sha256').update(sql).digest('hex')
  return { area, number, name: `${area}/${file}`, sql, checksum }
}

const idOf = ({ area, number }: Pick<Migration, 'area' | 'number'>): string => `${area} ${number}`

/**
 * Migrates the database to the schema of this code, forward only, with one transaction per file. Several
 * instances may call it at once. `url` must connect to the server directly, because the lock belongs to the
 * session, and a transaction pooler would change sessions.
 */
export async function migrate(options: {
  url: string
  folder?: string
  /**
   * The version of the gateway, stored with each migration. An older release that cannot read the schema names this
   * version when it refuses to start.
   */
  release?: string
  progress?: (line: string) => void
}): Promise<{ applied: string[] }> {
  const { url, folder, release, progress = () => {} } = options
  const migrations = readMigrations(folder)
  const client = new pg.Client({
    connectionString: url,
    application_name: 'portico migrate',
    connectionTimeoutMillis: 10_000,
  })
  // The query in flight reports a lost connection; without a listener the event `error` would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    await checkServer(client)
    await lock(client, progress)
    const pending = await pendingOf(client, migrations)
    for (const migration of pending) {
      progress(`Applying ${migration.name}`)
      await apply(client, migration, release)
    }
    return { applied: pending.map(({ name }) => name) }
  } finally {
    await client.end().catch(() => {})
  }
}

async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ number: number; version: string }>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as version`,
  )
  const server = rows[0]
  if (!server || server.number < serverVersionMin) {
    throw new StoreRefusal(
      `PostgreSQL 15 or later is required, and the server has version ${server?.version}.`,
    )
  }
}

async function lock(client: pg.Client, progress: (line: string) => void): Promise<void> {
  await client.query('set statement_timeout = 0')
  await client.query('set lock_timeout = 0')
  const { rows } = await client.query<{ got: boolean }>('select pg_try_advisory_lock($1) as got', [
    migrationLock,
  ])
  if (rows[0]?.got) return
  progress('Another instance is migrating the database; waiting for it')
  await client.query('select pg_advisory_lock($1)', [migrationLock])
}

type Applied = Pick<Migration, 'area' | 'number' | 'name' | 'checksum'> & {
  /** The version of the gateway that applied the migration; null if versions were not recorded yet. */
  release: string | null
  /** The moment at which the migration was applied, in UTC and in a form that sorts. */
  at: string
}

export async function appliedMigrations(
  query: <Row extends object>(text: string) => Promise<Row[]>,
): Promise<Applied[] | undefined> {
  const columns = await query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = to_regclass('schema_migration') and attnum > 0`,
  )
  if (columns.length === 0) return undefined
  if (!columns.some(({ name }) => name === 'area')) {
    throw unreadable(
      'This release cannot read the database: its migrations have one sequence of numbers.',
      'Sources from before the first release wrote it: they read it.',
    )
  }
  // In a schema of an early release the table has no column `release`, so the row is read as JSON.
  return query<Applied>(
    `select area, number, name, checksum, to_jsonb(schema_migration) ->> 'release' as release,
       to_char(applied_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') as at
     from schema_migration order by area, number`,
  )
}

/** The database holds wallet keys, so a refusal names the release that reads it, and says how to take the money out. */
const unreadable = (problem: string, reader: string): StoreRefusal =>
  new StoreRefusal(
    `${problem} Nothing was changed. ${reader} Keep the database and its key-encryption keys: nothing else has the ` +
      'keys of the wallets. To take the money out, start what reads it with the same settings, withdraw the ' +
      'positions, and transfer the balances to addresses of yours (docs/operations.md, Upgrade).',
  )

const dayOf = ({ at }: Applied): string => at.slice(0, 10)

function lastMigrator(applied: readonly Applied[]): string {
  const last = applied.reduce((newest, each) => (each.at > newest.at ? each : newest))
  return last.release === null
    ? `A release from before versions were recorded migrated it last, on ${dayOf(last)}: the release, or the sources, of that day read it.`
    : `Portico ${last.release} migrated it last, on ${dayOf(last)}: that release reads it.`
}

async function pendingOf(client: pg.Client, migrations: Migration[]): Promise<Migration[]> {
  // The table is read first, because "if not exists" on an existing table raises a notice at every start.
  const applied = await appliedMigrations(async <Row extends object>(text: string) => {
    const { rows } = await client.query<Row & pg.QueryResultRow>(text)
    return rows
  })
  if (!applied) {
    await client.query(
      `create table schema_migration (
         area text not null, number int not null, name text not null, checksum text not null,
         applied_at timestamptz not null default now(), release text, primary key (area, number))`,
    )
    return migrations
  }
  const known = new Map(migrations.map((migration) => [idOf(migration), migration]))
  for (const row of applied) checkApplied(row, known.get(idOf(row)), { migrations, applied })
  const done = new Map(applied.map((row) => [idOf(row), row]))
  const pending = migrations.filter((migration) => !done.has(idOf(migration)))
  for (const { area, number, name } of pending) {
    const later = applied.find((row) => row.area === area && row.number > number)
    if (!later) continue
    throw new StoreRefusal(
      `The migration ${name} was added after ${later.name} was applied to this database. Give it a higher number.`,
    )
  }
  if (pending.length > 0)
    await client.query('alter table schema_migration add column if not exists release text')
  return pending
}

type Sides = { migrations: readonly Migration[]; applied: readonly Applied[] }

function checkApplied(row: Applied, migration: Migration | undefined, { migrations, applied }: Sides): void {
  const newest = migrations.findLast(({ area }) => area === row.area)
  if (row.number > (newest?.number ?? 0)) {
    throw unreadable(
      `The database is newer than this release: it has ${row.name}, and this release ends at ` +
        `${newest?.name ?? 'nothing'} there.`,
      `${lastMigrator(applied)} So does every later one; the backup from before the upgrade can be restored, too.`,
    )
  }
  if (migration?.checksum !== row.checksum) {
    throw unreadable(
      `This release cannot read the database: the migration ${row.name} that was applied to it on ${dayOf(row)} is not ` +
        'the one of this release.',
      `${lastMigrator(applied)} (An applied file is never edited or removed: restore it, and put the change into ` +
        'a new file.)',
    )
  }
}

async function apply(client: pg.Client, migration: Migration, release: string | undefined): Promise<void> {
  const { area, number, name, sql, checksum } = migration
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query('begin')
      await client.query(`set local lock_timeout = ${ddlLockTimeoutMs}`)
      await client.query(sql)
      await client.query(
        'insert into schema_migration (area, number, name, checksum, release) values ($1, $2, $3, $4, $5)',
        [area, number, name, checksum, release ?? null],
      )
      await client.query('commit')
      return
    } catch (cause) {
      await client.query('rollback').catch(() => {})
      const { code, position, message } = cause as { code?: string; position?: string; message: string }
      if ((code === '55P03' || code === '40P01') && attempt < ddlAttemptsMax) continue
      const line = position ? `:${sql.slice(0, Number(position)).split('\n').length}` : ''
      throw new Error(`The migration ${name}${line} failed: ${message}`, { cause })
    }
  }
}
