import { resolve } from 'node:path'
import { lockDataDir } from '#start/lock.ts'
import { openDatabase } from '#store/database.ts'
import { backupCluster } from '#store/embedded/backup.ts'
import { restoreCluster } from '#store/embedded/restore.ts'
import { embeddedPostgres } from '#store/embedded.ts'
import { StoreRefusal } from '#store/refusal.ts'
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

/** Runs while no server runs, and records itself in the restored database. */
async function restore(options: SessionOptions, args: Parameters<AdminCommand['run']>[1]): Promise<void> {
  assertEmbedded(options)
  const { config, printLine } = options
  const source = resolve(args.positional('folder'))
  using _lock = lockDataDir(config.DATA_DIR)
  const { previousData } = await restoreCluster({ dataDir: config.DATA_DIR, source, progress: printLine })
  await using parts = new AsyncDisposableStack()
  const server = await embeddedPostgres({ dataDir: config.DATA_DIR, progress: printLine })
  parts.defer(() => server.close())
  const database = openDatabase({ url: server.url, poolMax: 1, applicationName: 'portico admin' })
  parts.defer(() => database.close())
  const details = { folder: source, aside: previousData ?? null }
  const recorded = assertSchema(database.pool).then(
    () => recordAction(database.pool, options, { command: 'restore', details }),
    (error: Error) => printLine(`Not recorded: ${error.message}`),
  )
  await recorded
  printLine(`The database of ${config.DATA_DIR} was restored from ${source}`)
  if (previousData)
    printLine(`The previous database is in ${previousData}; remove it after checking the restored one`)
}

export const backupCommands: readonly AdminCommand[] = [
  {
    name: 'backup',
    positionals: ['<folder>'],
    options: {},
    changes: false,
    summary: 'copy the embedded database into a new folder, also while gateways run',
    run: backup,
  },
  {
    name: 'restore',
    positionals: ['<folder>'],
    options: {},
    changes: true,
    summary: 'replace the embedded database by a backup, while no gateway runs',
    run: async () => {},
    runAlone: restore,
  },
]
