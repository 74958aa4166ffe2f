import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '#config.ts'
import { postgresBus } from '#durable/bus.ts'
import type { Transactions } from '#durable/transactions.ts'
import { publishTopics } from '#durable/wake.ts'
import { type Clock, systemClock } from '#kernel/clock.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { databasePlace } from '#start/place.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { appliedMigrations, readMigrations } from '#store/migrate.ts'
import { all, type Queryable, q, send } from '#store/query.ts'
import { StoreRefusal } from '#store/refusal.ts'
import { type Row, rowLines } from './output.ts'

export type AdminAction = { command: string; subject?: string | undefined; details?: object }
export type Operator = { actor: string; reason: string | null }

/** What a command works with: the database of the installation, and who is asking and why. */
export type Session = Operator & {
  config: Config
  /** This use of the command line, as instances know each other: it leases, and it sends hints. */
  instanceId: string
  databaseUrl: string
  database: Database
  transactions: Transactions
  clock: Clock
  say: (line: string) => void
  /** One object a line instead of columns and sentences about them. */
  json: boolean
  print: (rows: readonly Row[]) => void
  /** In the transaction of the change, so that neither is without the other. */
  record(db: Queryable, action: AdminAction): Promise<void>
  /** After the commit: every instance looks at once. */
  notify(topics: readonly string[]): Promise<void>
}

export type SessionOptions = Operator & { config: Config; json: boolean; say: (line: string) => void }

/** Rows name the operator and the reason as one text, where a column holds both. */
export const signature = ({ actor, reason }: Operator): string => `${actor}: ${reason}`

export async function addAction(
  db: Queryable,
  { actor, reason }: Operator,
  { command, subject, details = {} }: AdminAction,
): Promise<void> {
  const at = systemClock.now()
  const row = { at, actor, reason, command, subject: subject ?? null, details: JSON.stringify(details) }
  await all(db, q.insertInto('admin_action').values(row as never))
}

/** Refused before anything is written: a command of another release would not fit the tables. */
export async function demandSchema(db: Queryable): Promise<void> {
  const ours = readMigrations().map(({ name }) => name)
  const applied = await appliedMigrations(<Row extends object>(text: string) => send<Row>(db, text))
  const theirs = applied?.map(({ name }) => name) ?? []
  const missing = ours.find((name) => !theirs.includes(name))
  const foreign = theirs.find((name) => !ours.includes(name))
  if (foreign)
    throw new StoreRefusal(
      `The database has the migration ${foreign}, which this release does not know. Use the release that made it.`,
    )
  if (missing)
    throw new StoreRefusal(
      `The database lacks the migration ${missing}. Start the gateway of this release once, which migrates it.`,
    )
}

export async function openSession(
  { config, actor, reason, json, say }: SessionOptions,
  parts: AsyncDisposableStack,
): Promise<Session> {
  // A start would make an empty database where none is.
  if (!config.DATABASE_URL && !existsSync(join(config.DATA_DIR, 'postgres.json')))
    throw new StoreRefusal(`There is no database in ${config.DATA_DIR}. Set DATA_DIR or DATABASE_URL.`)
  const progress = (line: string) => process.stderr.write(`${line}\n`)
  const place = parts.use(await databasePlace(config, progress))
  const directUrl = config.DATABASE_DIRECT_URL ?? place.url
  const options = { url: place.url, directUrl, poolMax: 4, applicationName: 'portico admin' }
  const database = openDatabase(options)
  parts.defer(() => database.close())
  await demandSchema(database.pool)
  const instanceId = uuidv7(systemClock.now(), systemRandom)
  const bus = postgresBus(database)
  return {
    config,
    actor,
    reason,
    say,
    json,
    instanceId,
    database,
    databaseUrl: place.url,
    transactions: {
      pool: database.pool,
      run: database.transaction,
      runAfter: database.transactionAfter,
    },
    clock: systemClock,
    print: (rows) => {
      for (const line of rowLines(rows, json)) say(line)
    },
    record: (db, action) => addAction(db, { actor, reason }, action),
    notify: (topics) => publishTopics(bus, instanceId, topics),
  }
}
