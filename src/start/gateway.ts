import { appendFileSync, readFileSync } from 'node:fs'
import type { Overrides } from '#compose/compose.ts'
import type { Config } from '#config.ts'
import { createFailpoints, type Failpoints, noFailpoints } from '#kernel/failpoint.ts'
import type { Log } from '#kernel/log.ts'
import { createWitnessFile } from '#store/database-witness-file.ts'
import { openDatabaseEndpoint, openUpstreamEndpoints } from './backing-services.ts'
import { lockDataDir } from './data-dir-lock.ts'
import { toStartupError } from './database-startup-error.ts'
import { assertPortFree } from './port-check.ts'
import type { Stop } from './stop-signals.ts'
import { exitOnUncaught } from './uncaught.ts'

type StartDeps = {
  config: Config
  log: Log
  printLine: (line: string) => void
  stop?: Stop
}
export type Gateway = {
  url: string
  /** Loads the code for signatures, in the idle time after the start. */
  loadSigning(): Promise<void>
  close(): Promise<void>
}

/**
 * The signal SIGUSR2 arms the failpoints, so that a test hits the process during a request and not during startup. The
 * failpoint named by `FAILPOINT` kills the process. A failpoint whose name the file `FAILPOINT_STOP` contains at the
 * signal suspends the process until it is continued.
 */
function failpointsOf({ FAILPOINT, FAILPOINT_LOG, FAILPOINT_STOP }: Config): Failpoints {
  if (!FAILPOINT && !FAILPOINT_LOG && !FAILPOINT_STOP) return noFailpoints
  let armed = noFailpoints
  const record = FAILPOINT_LOG ? (name: string) => appendFileSync(FAILPOINT_LOG, `${name}\n`) : undefined
  process.on('SIGUSR2', () => {
    const stopAt = FAILPOINT_STOP && readFileSync(FAILPOINT_STOP, 'utf8').trim()
    armed = createFailpoints({
      armed: () => true,
      killAt: stopAt || FAILPOINT,
      record,
      kill: () => process.kill(process.pid, stopAt ? 'SIGSTOP' : 'SIGKILL'),
    })
  })
  return { pass: (name) => armed.pass(name) }
}

/**
 * Rejects when the stop is forced, without waiting for the work: the database and the world, which the work uses, are
 * ended next.
 */
async function untilForced<T>(work: PromiseLike<T>, stop: Stop | undefined): Promise<T> {
  if (!stop) return work
  const { forced } = stop
  const abandoned = Promise.withResolvers<never>()
  const abandon = () => abandoned.reject(forced.reason)
  forced.addEventListener('abort', abandon)
  if (forced.aborted) abandon()
  return Promise.race([work, abandoned.promise])
}

/** Starts all parts in order of dependency; closes the started ones in reverse order, even if a later one fails. */
export async function startGateway(
  { config, log, printLine, stop }: StartDeps,
  overrides: Overrides = {},
): Promise<Gateway> {
  exitOnUncaught(log)
  const parts = new AsyncDisposableStack()
  try {
    await assertPortFree(config.HOST, config.PORT, 'PORT')
    const lock = lockDataDir(config.DATA_DIR)
    parts.defer(() => lock[Symbol.dispose]())
    // The application code loads while database and world start; the checks above do not wait for it.
    const loading = import('#app.ts')
    loading.catch(() => undefined)
    const [database, upstreams] = await Promise.allSettled([
      openDatabaseEndpoint(config, printLine, stop),
      openUpstreamEndpoints(config, printLine, stop),
    ])
    if (upstreams.status === 'fulfilled') parts.use(upstreams.value)
    if (database.status === 'fulfilled') parts.use(database.value)
    stop?.cancelled.throwIfAborted()
    if (database.status === 'rejected') throw database.reason
    if (upstreams.status === 'rejected') throw upstreams.reason
    const { urls } = upstreams.value
    const { app } = await loading
    const deps = {
      config,
      log,
      printLine,
      databaseUrl: database.value.url,
      urls,
      failpoints: failpointsOf(config),
      witnessFile: createWitnessFile(config.DATA_DIR),
    }
    const starting = app(deps, overrides).catch((error: unknown) => {
      throw toStartupError(error, config)
    })
    const gateway = await untilForced(starting, stop)
    parts.defer(() => untilForced(gateway[Symbol.asyncDispose](), stop))
    stop?.cancelled.throwIfAborted()
    printLine(`docs   ${gateway.url}/docs`)
    printLine(`data   ${config.DATA_DIR}`)
    if (urls.control) printLine(`world  ${urls.control}`)
    return { url: gateway.url, loadSigning: gateway.loadSigning, close: () => parts.disposeAsync() }
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}
