import { ConfigRefused, readConfig } from '#config.ts'
import { openDataDir } from '#start/data-dir.ts'
import { keepTickShape } from '#start/keep-next-tick-fast.ts'
import { onStopSignals, stopOf } from '#start/stop-signals.ts'
import { useCompileCache } from './start/compile-cache.ts'

/** Expected failures of a start are printed in one sentence each; anything else is a bug and keeps its stack. */
const expected = new Set(['ConfigRefused', 'DataDirRefusal', 'InUse', 'StoreRefusal', 'WorldRefusal'])
const printLine = (line: string) => process.stdout.write(`${line}\n`)

function exitWithProblems(error: unknown): never {
  const known = error instanceof Error && expected.has(error.constructor.name)
  const problems =
    error instanceof ConfigRefused
      ? error.problems
      : [known ? error.message : String((error as Error)?.stack ?? error)]
  for (const problem of problems) process.stderr.write(`portico cannot start: ${problem}\n`)
  process.exit(1)
}

keepTickShape()
// Without this handler Node opens an inspector, through which any process of this account can read keys.
process.on('SIGUSR1', () => {})

async function main(): Promise<void> {
  const config = readConfig()
  openDataDir(config.DATA_DIR)
  useCompileCache(config.DATA_DIR)
  const { logger } = await import('#start/logger.ts')
  const { startGateway } = await import('#start/gateway.ts')
  const log = logger(config.LOG_LEVEL)

  const [cancelling, forcing] = [new AbortController(), new AbortController()]
  const { signal: cancelled } = cancelling
  const gateway = startGateway({ config, log, printLine, stop: { cancelled, forced: forcing.signal } })
  const stop = stopOf({ gateway, cancelling, forcing, log, printLine })
  onStopSignals({ stop, stopNow: () => forcing.abort() })
  // The launcher of `npm start` holds this channel; it closes when the launcher ends for any reason.
  if (process.connected === false) void stop('launcher ended')
  else if (process.channel) process.on('disconnect', () => stop('launcher ended'))

  const started = await gateway.catch((error: unknown) => {
    if (!cancelled.aborted) throw error
  })
  if (!started || cancelled.aborted) return
  printLine(`portico ready ${started.url}`)
  await started.loadSigning()
}

main().catch(exitWithProblems)
