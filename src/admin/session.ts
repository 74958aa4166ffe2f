import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '#config.ts'
import { publishTopics } from '#durable/events/notifier.ts'
import { createPostgresBus } from '#durable/events/postgres-notify.ts'
import type { Transactions } from '#durable/transactions.ts'
import { type Clock, systemClock } from '#kernel/clock.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import type { Operator } from '#kernel/task/operator-text.ts'
import { openDatabaseEndpoint } from '#start/backing-services.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { appliedMigrations, readMigrations } from '#store/migrate.ts'
import { StoreRefusal } from '#store/operator-error.ts'
import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import { type Row, rowLines } from './output.ts'

export type AdminAction = { command: string; subject?: string | undefined; details?: object }

/** The context of a command: the database of the installation, the operator and the reason. */
export type Session = Operator & {
  config: Config
  /** The id of this process among the instances of the gateway, for its leases and notifications. */
  instanceId: string
  databaseUrl: string
  database: Database
  transactions: Transactions
  clock: Clock
  printLine: (line: string) => void
  /** Whether to print one JSON object per line instead of columns and sentences. */
  json: boolean
  print: (rows: readonly Row[]) => void
  /** Records an action; must be called in the transaction of the change, so that both commit together. */
  record(db: Queryable, action: AdminAction): Promise<void>
  /** Makes every instance read the topics again at once; must be called after the commit. */
  notify(topics: readonly string[]): Promise<void>
}

export type SessionOptions = Operator & { config: Config; json: boolean; printLine: (line: string) => void }

export async function recordAction(
  db: Queryable,
  { actor, reason }: Operator,
  { command, subject, details = {} }: AdminAction,
): Promise<void> {
  const at = systemClock.now()
  const row = { at, actor, reason, command, subject: subject ?? null, details: JSON.stringify(details) }
  await fetchAll(db, builder.insertInto('admin_action').values(row as never))
}

/** Runs before any write: the commands of another release may not fit the tables. */
export async function assertSchema(db: Queryable): Promise<void> {
  const ours = readMigrations().map(({ name }) => name)
  const applied = await appliedMigrations(<Row extends object>(text: string) => query<Row>(db, text))
  const theirs = applied?.map(({ name }) => name) ?? []
  const missing = ours.find((name) => !theirs.includes(name))
  const foreign = theirs.find((name) => !ours.includes(name))
  if (foreign)
    throw new StoreRefusal(
      `The database has the migration ${foreign}, which this release does not know. Use the release that applied it.`,
    )
  if (missing)
    throw new StoreRefusal(
      `The database lacks the migration ${missing}. Start the gateway of this release once to migrate it.`,
    )
}

export async function openSession(
  { config, actor, reason, json, printLine }: SessionOptions,
  parts: AsyncDisposableStack,
): Promise<Session> {
  // `openDatabaseEndpoint` creates a database where none exists, so the existence is checked first.
  if (!config.DATABASE_URL && !existsSync(join(config.DATA_DIR, 'postgres.json')))
    throw new StoreRefusal(`There is no database in ${config.DATA_DIR}. Set DATA_DIR or DATABASE_URL.`)
  const progress = (line: string) => process.stderr.write(`${line}\n`)
  const endpoint = parts.use(await openDatabaseEndpoint(config, progress))
  const directUrl = config.DATABASE_DIRECT_URL ?? endpoint.url
  const options = { url: endpoint.url, directUrl, poolMax: 4, applicationName: 'portico admin' }
  const database = openDatabase(options)
  parts.defer(() => database.close())
  await assertSchema(database.pool)
  const instanceId = uuidv7(systemClock.now(), systemRandom)
  const bus = createPostgresBus(database)
  return {
    config,
    actor,
    reason,
    printLine,
    json,
    instanceId,
    database,
    databaseUrl: endpoint.url,
    transactions: {
      pool: database.pool,
      run: database.transaction,
      pipelined: database.pipelinedTransaction,
    },
    clock: systemClock,
    print: (rows) => {
      for (const line of rowLines(rows, { json })) printLine(line)
    },
    record: (db, action) => recordAction(db, { actor, reason }, action),
    notify: (topics) => publishTopics(bus, instanceId, topics),
  }
}
