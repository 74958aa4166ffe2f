import type { Config } from '#config.ts'
import { createEngine } from '#durable/engine.ts'
import type { MessageBus } from '#durable/events/notifier.ts'
import { createPostgresBus } from '#durable/events/postgres-notify.ts'
import { createPriceTriggers } from '#engines/trigger-orders/price-triggers.ts'
import { type Clock, systemClock } from '#kernel/clock.ts'
import type { Failpoints } from '#kernel/failpoint.ts'
import { type Random, systemRandom } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Database } from '#store/database.ts'
import type { WitnessFile } from '#store/database-witness-file.ts'
import { approvalPage } from './page-urls.ts'
import { openStore } from './store.ts'

export type CoreDeps = {
  config: Config
  databaseUrl: string
  log: Log
  /** Writes a line about the progress of the start. */
  printLine: (line: string) => void
  failpoints: Failpoints
  /** Stores over restarts what this instance saw of its databases; without a store this knowledge is lost. */
  witnessFile?: WitnessFile
  /** The base URL is a function, because the port is known only once the server listens. */
  baseUrl: () => string
}
/** A test or a bench replaces these parts; a part without an override is that of production. */
export type CoreOverrides = {
  clock?: Clock
  random?: Random
  /** Opens the notifications between instances. */
  createBus?: (database: Database) => MessageBus
  /** Interval in which the instance on duty polls for due tasks whose notification was lost. */
  claimPollMs?: number
  /** How long a standby may be away before new money is refused. */
  replicationGraceMs?: number
}

const claimPollMsDefault = 1_000

/** The parts that every section needs: the database, the task engine, time and randomness. */
export async function openCore(deps: CoreDeps, overrides: CoreOverrides = {}) {
  const { config, log, baseUrl, printLine } = deps
  const {
    clock = systemClock,
    random = systemRandom,
    createBus = createPostgresBus,
    claimPollMs = claimPollMsDefault,
    replicationGraceMs,
  } = overrides
  await using parts = new AsyncDisposableStack()
  const stores = await openStore(deps, parts)
  const { database } = stores
  const transactions = {
    pool: database.pool,
    run: database.transaction,
    pipelined: database.pipelinedTransaction,
  }
  const taskEngine = parts.use(
    createEngine({
      transactions,
      bus: createBus(database),
      clock,
      random,
      log,
      heartbeats: stores.heartbeats.pool,
      options: {
        slots: config.RUNNER_SLOTS,
        leaseMs: config.LEASE_MS,
        pollMs: claimPollMs,
        replicationGraceMs,
      },
      approvers: {
        hasNoPeople: config.AUTH_MODE === 'off',
        page: (approvalId) => approvalPage(config, baseUrl, approvalId),
      },
      witnessFile: deps.witnessFile,
      durability: config.DATABASE_DURABILITY ?? 'single',
    }),
  )
  const priceTriggers = createPriceTriggers({
    transactions,
    taskEngine,
    clock,
    random,
    log,
    leaseMs: config.LEASE_MS,
  })
  const owned = parts.move()
  return {
    config,
    log,
    baseUrl,
    printLine,
    clock,
    random,
    stores,
    db: database.pool,
    transactions,
    taskEngine,
    priceTriggers,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
export type Core = Awaited<ReturnType<typeof openCore>>
