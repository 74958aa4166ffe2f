/** The rows of a database as text. Its schema is that of its migrations, which are never edited. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { migrate, migrationsFolder, readMigrations } from '#store/migrate.ts'

export type DatabaseRows = {
  migrations: string[]
  /** A JSON list of rows, by table; as text, because numbers have more digits than a number here. */
  tables: Record<string, string>
  sequences: Record<string, string>
}
type Columns = { table: string; columns: string[] }

const withClient = async <T>(url: string, run: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return run(client).finally(() => client.end())
}

/** Tables with the columns that are stored, and not computed. */
const tablesOf = async (client: pg.Client): Promise<Columns[]> => {
  const { rows } = await client.query<Columns>(
    `select c.relname as table, array_agg(quote_ident(a.attname) order by a.attnum) as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
       and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
     group by c.relname order by c.relname`,
  )
  return rows
}

export const readRows = (url: string): Promise<DatabaseRows> =>
  withClient(url, async (client) => {
    const tables: Record<string, string> = {}
    for (const { table, columns } of await tablesOf(client)) {
      const { rows } = await client.query<{ content: string | null }>(
        `select json_agg(r)::text as content from (select ${columns.join()} from "${table}") r`,
      )
      if (rows[0]?.content) tables[table] = rows[0].content
    }
    const sequences = await client.query<{ name: string; value: string }>(
      `select quote_ident(sequencename) as name, last_value::text as value from pg_sequences
       where schemaname = 'public' and last_value is not null`,
    )
    const applied = await client.query<{ name: string }>('select name from schema_migration')
    return {
      migrations: applied.rows.map(({ name }) => name),
      tables,
      sequences: Object.fromEntries(sequences.rows.map(({ name, value }) => [name, value])),
    }
  })

/** The schema that the database had: its migrations alone. */
const migrateAsThen = async (url: string, names: readonly string[]): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'portico-migrations-'))
  try {
    const files = new Set(names.map((name) => name.split('/').join('/')))
    const known = readMigrations().map(({ name }) => name)
    const missing = names.filter((name) => !known.includes(name))
    if (missing.length > 0) throw new Error(`These migrations were removed: ${missing.join(', ')}`)
    cpSync(migrationsFolder, folder, {
      recursive: true,
      filter: (path) => {
        const [area, file] = path.slice(migrationsFolder.length + 1).split(/[\\/]/)
        return file === undefined || names.includes(`${area?.slice(3)}/${file}`)
      },
    })
    await migrate({ url, folder })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export async function writeRows(url: string, { migrations, tables, sequences }: DatabaseRows): Promise<void> {
  await migrateAsThen(url, migrations)
  await withClient(url, async (client) => {
    const all = await tablesOf(client)
    await client.query('begin')
    // Foreign keys and triggers have acted when these rows were written.
    await client.query('set local session_replication_role = replica')
    await client.query(`truncate ${all.map(({ table }) => `"${table}"`).join()}`)
    for (const { table, columns } of all)
      if (tables[table] !== undefined)
        await client.query(
          `insert into "${table}" (${columns.join()}) overriding system value
           select ${columns.join()} from json_populate_recordset(null::"${table}", $1::json)`,
          [tables[table]],
        )
    for (const [name, value] of Object.entries(sequences))
      await client.query('select setval($1::regclass, $2::bigint)', [name, value])
    await client.query('commit')
  })
}
