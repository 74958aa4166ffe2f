import { ConfigRefused, readConfig } from '#config.ts'
import { openDataDir, useCompileCache } from '#start/data-dir.ts'
import { onStopSignals } from '#start/stop-signals.ts'
import { keepTickShape } from '#start/tick-shape.ts'

/** Expected failures of a start are printed in one sentence each; anything else is a bug and keeps its stack. */
const expected = new Set(['ConfigRefused', 'DataDirRefusal', 'InUse', 'StoreRefusal', 'WorldRefusal'])
const stopMsMax = 10_000
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

  let stopping = false
  const gateway = startGateway(config, log, printLine)
  const exit = (sentence: string) => {
    printLine(`portico ${sentence}`)
    process.exit(0)
  }
  const stop = (cause: string) => {
    if (stopping) return
    stopping = true
    printLine(`portico stopping (${cause})`)
    // Accepted work is stored already, so the next start resumes it.
    setTimeout(() => exit('stopped before everything was closed'), stopMsMax - 500).unref()
    gateway
      .then(({ close }) => close())
      .catch((error: unknown) => log.error({ error }, 'shutdown failed'))
      .finally(() => exit('stopped'))
  }
  onStopSignals({ stop, stopNow: () => process.exit(1) })
  // The launcher of `npm start` holds this channel; it closes when the launcher ends for any reason.
  if (process.channel) process.on('disconnect', () => stop('launcher ended'))

  const { url, loadSigning } = await gateway
  if (stopping) return
  printLine(`portico ready ${url}`)
  await loadSigning()
}

main().catch(exitWithProblems)
