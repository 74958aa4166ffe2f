import { resolve } from 'node:path'
import { everything, storeHold } from '#durable/time/money-hold.ts'
import { readPoint } from '#durable/time/wal-position-sql.ts'
import { systemClock } from '#kernel/clock.ts'
import { lockDataDir } from '#start/data-dir-lock.ts'
import { openDatabase } from '#store/database.ts'
import { createWitnessFile } from '#store/database-witness-file.ts'
import { backupCluster } from '#store/embedded/backup.ts'
import { restoreCluster } from '#store/embedded/restore.ts'
import { embeddedPostgres } from '#store/embedded-server.ts'
import { StoreRefusal } from '#store/operator-error.ts'
import type { Queryable } from '#store/query.ts'
import type { AdminCommand } from './command.ts'
import { assertSchema, recordAction, type SessionOptions } from './session.ts'

function assertEmbedded({ config }: Pick<SessionOptions, 'config'>): void {
  if (config.DATABASE_URL)
    throw new StoreRefusal(
      'DATABASE_URL points to an external server: back it up and restore it with its own tools (pg_basebackup, pg_dump of its version, or the snapshots of its provider).',
    )
}

const backup: AdminCommand['run'] = async (session, args) => {
  assertEmbedded(session)
  const target = resolve(args.positional('folder'))
  const { config, databaseUrl, printLine } = session
  const result = await backupCluster({
    dataDir: config.DATA_DIR,
    url: databaseUrl,
    target,
    progress: printLine,
  })
  const details = { folder: target, files: result.files, bytes: result.bytes, until: result.stopLsn }
  await session.record(session.database.pool, { command: 'backup', details })
  printLine(`${result.files} files, ${result.bytes} bytes in ${target}`)
  printLine(
    'The key-encryption keys are not included. Store them elsewhere: with both, anyone can use the wallets.',
  )
}

/** Restores a backup while no server runs, and records the command in the restored database. */
async function restore(options: SessionOptions, args: Parameters<AdminCommand['run']>[1]): Promise<void> {
  assertEmbedded(options)
  const { config, printLine } = options
  const source = resolve(args.positional('folder'))
  using _lock = lockDataDir(config.DATA_DIR)
  // A mark outside the database records the restore first. If this process ends before the restored database holds
  // money, the next start of the gateway finds the mark and holds it.
  const witnessFile = createWitnessFile(config.DATA_DIR)
  const { previousData } = await restoreCluster({
    dataDir: config.DATA_DIR,
    source,
    beforeReplacement: witnessFile.markRestored,
    progress: printLine,
  })
  await using parts = new AsyncDisposableStack()
  const server = await embeddedPostgres({ dataDir: config.DATA_DIR, progress: printLine })
  parts.defer(() => server.close())
  const database = openDatabase({ url: server.url, poolMax: 1, applicationName: 'portico admin' })
  parts.defer(() => database.close())
  const details = { folder: source, aside: previousData ?? null }
  const recorded = assertSchema(database.pool).then(
    async () => {
      await holdRestored(database.pool)
      witnessFile.forgetRestored()
      await recordAction(database.pool, options, { command: 'restore', details })
    },
    (error: Error) => printLine(`Not recorded: ${error.message}`),
  )
  await recorded
  printLine(`The database of ${config.DATA_DIR} was restored from ${source}`)
  if (previousData)
    printLine(`The previous database is in ${previousData}; remove it after checking the restored one`)
  printLine(
    'Money is on hold: what happened after the backup is on the chains and not in the database. Start the gateway, which',
  )
  printLine('compares them; then run `time show`, `time adopt` and `time resume`.')
}

/** The restored database itself starts no order and signs nothing, wherever it is started. */
async function holdRestored(db: Queryable): Promise<void> {
  await storeHold(db, {
    scope: everything,
    reason: 'restored',
    since: systemClock.now(),
    detail: { by: 'restore' },
    point: await readPoint(db),
  })
}

export const backupCommands: readonly AdminCommand[] = [
  {
    name: 'backup',
    positionals: ['<folder>'],
    changes: false,
    summary: 'copy the embedded database into a new folder, also while gateways run',
    run: backup,
  },
  {
    name: 'restore',
    positionals: ['<folder>'],
    summary: 'replace the embedded database by a backup, while no gateway runs',
    run: async () => {},
    runAlone: restore,
  },
]
