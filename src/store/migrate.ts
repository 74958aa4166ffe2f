import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { StoreRefusal } from './refusal.ts'

export type Migration = { number: number; name: string; sql: string; checksum: string }

/** One key for every version of the code, so that old and new instances wait for each other. */
const migrationLock = 5_065_703
const serverVersionMin = 150_000
/** DDL that waits for a lock makes every later reader wait behind it, so it lets them pass and tries again. */
const ddlLockTimeoutMs = 4_000
const ddlAttemptsMax = 10

export const migrationsFolder = fileURLToPath(new URL('./migrations', import.meta.url))

/** `0001_init.sql`, `0002_....sql` and so on. A number may be missing, none may come twice. */
export function readMigrations(folder = migrationsFolder): Migration[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.sql'))
  const migrations = names.sort().map((name) => {
    const number = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1])
    if (!number) throw new StoreRefusal(`The migration ${name} is not named 0001_<words>.sql.`)
    // A checkout on Windows may have rewritten the line ends; that is no other migration.
    const sql = readFileSync(join(folder, name), 'utf8').replaceAll('\r\n', '\n')
    return { number, name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
  })
  const twice = migrations.find(({ number }, index) => number === migrations[index - 1]?.number)
  if (twice) throw new StoreRefusal(`The migration ${twice.name} has the number of the one before it.`)
  return migrations
}

/**
 * Brings the database to the schema of this code, forward only, one transaction for each file. Any number of
 * instances may call it at once. `url` must reach the server directly: the lock belongs to the session, which a
 * transaction pooler would change under it.
 */
export async function migrate(options: {
  url: string
  folder?: string
  progress?: (line: string) => void
}): Promise<{ applied: string[] }> {
  const { url, folder, progress = () => {} } = options
  const migrations = readMigrations(folder)
  const client = new pg.Client({
    connectionString: url,
    application_name: 'portico migrate',
    connectionTimeoutMillis: 10_000,
  })
  // The query in flight reports the loss; without a listener the event would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    await checkServer(client)
    await lock(client, progress)
    const pending = await pendingOf(client, migrations)
    for (const migration of pending) {
      progress(`Applying ${migration.name}`)
      await apply(client, migration)
    }
    return { applied: pending.map(({ name }) => name) }
  } finally {
    // The lock goes with the session.
    await client.end().catch(() => {})
  }
}

async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ number: number; version: string }>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as version`,
  )
  const server = rows[0]
  if (!server || server.number < serverVersionMin) {
    throw new StoreRefusal(`PostgreSQL 15 or later is needed, and the server is ${server?.version}.`)
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

async function pendingOf(client: pg.Client, migrations: Migration[]): Promise<Migration[]> {
  // Asked first, because "if not exists" on an existing table sends a notice at every start.
  const { rows: table } = await client.query<{ present: boolean }>(
    `select to_regclass('schema_migration') is not null as present`,
  )
  if (!table[0]?.present) {
    await client.query(
      `create table schema_migration (
         number int primary key, name text not null, checksum text not null,
         applied_at timestamptz not null default now())`,
    )
  }
  const { rows } = await client.query<{ number: number; name: string; checksum: string }>(
    'select number, name, checksum from schema_migration order by number',
  )
  const known = new Map(migrations.map((migration) => [migration.number, migration]))
  const newest = migrations.at(-1)
  for (const { number, name, checksum } of rows) {
    const migration = known.get(number)
    if (number > (newest?.number ?? 0)) {
      throw new StoreRefusal(
        `The database is newer than this code: it has ${name}, and this code ends at ${newest?.name ?? 'nothing'}. ` +
          'Start the version that wrote it, or a later one.',
      )
    }
    if (migration?.checksum !== checksum) {
      throw new StoreRefusal(
        `The migration ${name} is not the one that was applied to this database: an applied file is never edited ` +
          'or removed. Restore it and put the change into a new file.',
      )
    }
  }
  const applied = rows.at(-1)
  const pending = migrations.filter(({ number }) => !rows.some((row) => row.number === number))
  const late = pending.find(({ number }) => number < (applied?.number ?? 0))
  if (late) {
    throw new StoreRefusal(
      `The migration ${late.name} came after ${applied?.name} was applied to this database: give it a later number.`,
    )
  }
  return pending
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  const { number, name, sql, checksum } = migration
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query('begin')
      await client.query(`set local lock_timeout = ${ddlLockTimeoutMs}`)
      await client.query(sql)
      await client.query('insert into schema_migration (number, name, checksum) values ($1, $2, $3)', [
        number,
        name,
        checksum,
      ])
      await client.query('commit')
      return
    } catch (cause) {
      await client.query('rollback').catch(() => {})
      const { code, position, message } = cause as { code?: string; position?: string; message: string }
      if (code === '55P03' && attempt < ddlAttemptsMax) continue
      const line = position ? `:${sql.slice(0, Number(position)).split('\n').length}` : ''
      throw new Error(`The migration ${name}${line} failed: ${message}`, { cause })
    }
  }
}
