import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { candleSpanMs } from '#market/candle.ts'
import type { Windows } from '#market/strategies/candle-columns.ts'
import { assetsOf, decide } from '#market/strategies/decide.ts'
import { decisionText, inputsSha256, recordInputs } from '#market/strategies/decision-record.ts'
import { decisionWords, exitWords } from '#market/strategies/decision-words.ts'
import { assetsInUse } from '#market/strategies/paper-run.ts'
import type { Decision } from '#market/strategies/strategy.ts'
import { equityOf } from '#market/strategies/strategy-run.ts'
import { type Queryable, query } from '#store/query.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'
import {
  fillsOfRun,
  findAccount,
  lockAccount,
  openAccountRow,
  type StrategyAccount,
  storeAccount,
  storeDecision,
  storeEquity,
  storeFills,
} from './account-store.ts'
import { tripEvents } from './guard-trips.ts'
import type { Observe } from './market-reads.ts'
import type { ModeDriver, ModeReading, OrderedRun, StrategyTerms } from './mode-driver.ts'
import type { StrategyReports } from './reports.ts'
import { skipOfHold } from './run-end.ts'
import type {
  Acted,
  ActGiven,
  Decided,
  RecordedDecision,
  Skip,
  StoredDecision,
  StrategyRunner,
  StrategyRunRow,
} from './run-port.ts'
import { takeOver } from './take-over.ts'
import type { ReadTerms } from './terms.ts'

/**
 * Decides and acts for the runs of strategies, in every mode. A decision is made under the lock of the account, in the
 * commit that stores it, so that each number of a run has one decision and nothing comes between it and what it read.
 */

export type Drivers = Readonly<Partial<Record<StrategyMode, ModeDriver>>>
export type RunnerDeps = {
  db: Queryable
  /** The clock of schedules. */
  clock: Clock
  random: Random
  readTerms: ReadTerms
  observe: Pick<Observe, 'windows'>
  drivers: Drivers
  reports: StrategyReports
}

export const createStrategyRunner = (deps: RunnerDeps): StrategyRunner => ({
  decide: (run, { seq }) => prepare(deps, run, seq),
  act: (run, given) => act(deps, run, given),
})

export function driverOf(drivers: Drivers, mode: StrategyMode): ModeDriver {
  const driver = drivers[mode]
  if (!driver) throw new Fault('unavailable', `This instance runs no strategy in the mode ${mode}`)
  return driver
}

const keyOf = ({ strategy_id, mode }: StrategyRunRow) => ({ strategy_id, mode })
const isExit = ({ execution_type: type }: StrategyRunRow): boolean => type === 'exit'

/** All that a decision reads beside the locked account. */
type Prepared = {
  run: StrategyRunRow
  seq: number
  nowMs: number
  terms: StrategyTerms
  driver: ModeDriver
  windows: Windows | undefined
  reading: ModeReading
  /** The account as it is opened if the strategy has none yet. */
  fresh: Pick<StrategyAccount, 'run' | 'cursor'>
  /** Why everything has to end, of the run of an exit. */
  exit: string | undefined
}

async function prepare(deps: RunnerDeps, run: StrategyRunRow, seq: number): Promise<Decided> {
  const driver = driverOf(deps.drivers, run.mode)
  const known = await findAccount(deps.db, keyOf(run))
  const terms = await readRunTerms(deps, run, known).catch(skipOfClosed)
  if ('skip' in terms) return terms
  const observed = isExit(run) ? { windows: undefined } : await observeClose(deps, terms)
  if ('waitMs' in observed) return observed
  // The candles may take a while, and the orders arrive after the decision that reads them.
  const nowMs = deps.clock.now().getTime()
  const fresh = driver.open(terms, nowMs)
  const account = known ?? unsaved(run, fresh, nowMs)
  const reading = await driver.read(account, terms, { nowMs, userId: run.user_id, purpose: 'decide' })
  const exit = isExit(run) ? await exitReason(deps.db, run) : undefined
  const { windows } = observed
  const prepared = { run, seq, nowMs, terms, driver, windows, reading, fresh, exit }
  return { store: (tx) => decideUnderLock(deps, tx, prepared) }
}

function readRunTerms(
  { readTerms }: RunnerDeps,
  run: StrategyRunRow,
  account: StrategyAccount | undefined,
): Promise<StrategyTerms> {
  const { strategy_id: strategyId, version, mode } = run
  const assets = account ? assetsInUse(account.run) : []
  return readTerms({ strategyId, version, mode, assets, allowsDelisted: isExit(run) })
}

function skipOfClosed(error: unknown): { skip: Skip } {
  if (!(error instanceof Fault) || error.code !== 'market_closed') throw error
  return { skip: { reason: 'market_closed', code: error.code, message: error.message } }
}

/** Reads the candles until the newest close. While the venue has no weight left for that, the run waits. */
async function observeClose({ observe, clock }: RunnerDeps, terms: StrategyTerms) {
  const { span, config, userId } = terms
  const closeMs = Math.floor(clock.now().getTime() / candleSpanMs[span]) * candleSpanMs[span]
  const assets = assetsOf(config.decision.strategy)
  return observe.windows(assets, { span, closeMs }, userId).catch((error: unknown) => {
    const seconds = error instanceof Fault ? Number(error.extras?.retry_after) : Number.NaN
    if (!(seconds >= 0)) throw error
    return { waitMs: Math.max(1_000, seconds * 1_000) }
  })
}

const unsaved = (
  { strategy_id, mode, user_id, version }: StrategyRunRow,
  fresh: Pick<StrategyAccount, 'run' | 'cursor'>,
  nowMs: number,
): StrategyAccount => ({
  id: '',
  strategy_id,
  mode,
  user_id,
  version,
  watch_at: null,
  opened_at: new Date(nowMs),
  updated_at: new Date(nowMs),
  ...fresh,
})

/** The run of an exit has its reason from the start. */
async function exitReason(db: Queryable, { id }: StrategyRunRow): Promise<string> {
  const [row] = await query<{ reason: string | null }>(
    db,
    `select decision ->> 'reason' as reason from strategy_execution where id = $1`,
    [id],
  )
  return row?.reason ?? 'exit'
}

async function decideUnderLock(deps: RunnerDeps, tx: Tx, prepared: Prepared): Promise<StoredDecision> {
  const { run, seq, nowMs, terms, driver, windows, reading, exit } = prepared
  const at = new Date(nowMs)
  const locked = await lockOrOpen(deps, tx, prepared)
  const synced = await reading.apply(tx, locked)
  const { dayEndsMs } = prepared.fresh.run.guards
  const account =
    exit === undefined ? await takeOver(tx, synced.account, { terms, dayEndsMs }) : synced.account
  const seen = reading.stateOf(account, nowMs)
  const state = exit === undefined ? seen : { ...seen, exit }
  const { decision: config } = terms.config
  const decision = decide(windows, state, config)
  const sha256 = inputsSha256(windows, state, config)
  await storeDecision(tx, {
    execution_id: run.id,
    seq,
    strategy_id: run.strategy_id,
    at,
    decision: decisionText(decision),
    inputs_sha256: sha256,
    inputs: recordInputs(windows, state, config),
  })
  const ordered = { executionId: run.id, seq, atMs: nowMs, decision }
  const isPlaced = decision.orders.length > 0 || exit !== undefined
  const placed = isPlaced ? driver.place(account, ordered, terms) : account
  await storeFills(tx, synced.fills)
  await storeAccount(tx, { ...placed, watch_at: nextWatch(placed, driver, nowMs) }, at)
  await storeEquity(tx, keyOf(run), { usd: equityText(placed, terms), at })
  const acting: Acting = {
    seq,
    at_ms: nowMs,
    decision,
    text: exit === undefined ? decisionWords(decision, state, config) : exitWords(exit),
    sha256,
    driver: {},
    ...(exit !== undefined && { exit }),
  }
  return {
    decision: recordedDecision(acting),
    data: acting as Acting & JsonObject,
    events: await tripEvents(tx, { before: locked.run, after: account.run, terms }),
  }
}

async function lockOrOpen(
  { random }: RunnerDeps,
  tx: Tx,
  { run, fresh, nowMs }: Prepared,
): Promise<StrategyAccount> {
  const key = keyOf(run)
  const { user_id, version } = run
  const at = new Date(nowMs)
  return (
    (await lockAccount(tx, key)) ?? openAccountRow(tx, { ...key, user_id, version, ...fresh, at, random })
  )
}

export const nextWatch = (
  { run }: Pick<StrategyAccount, 'run'>,
  { watchMs }: Pick<ModeDriver, 'watchMs'>,
  nowMs: number,
): Date | null => (assetsInUse(run).length > 0 ? new Date(nowMs + watchMs) : null)

export const equityText = ({ run }: Pick<StrategyAccount, 'run'>, { config }: StrategyTerms): string =>
  fromUnits(equityOf(run, config), usdDecimals)

/** What the steps that act know of the decision. */
type Acting = {
  seq: number
  at_ms: number
  decision: Decision
  text: string
  sha256: string
  /** What the driver has stored. */
  driver: JsonObject
  exit?: string
}

/** The run of an exit ends with a decision that finds nothing, so it shows why it began. */
const recordedDecision = ({ decision, text, sha256, exit }: Acting): RecordedDecision => ({
  action: exit === undefined ? decision.action : 'exit',
  reason: exit ?? decision.reason,
  text,
  inputs_sha256: sha256,
})

async function act(
  deps: RunnerDeps,
  run: StrategyRunRow,
  { caller, data, context }: ActGiven,
): Promise<Acted> {
  const acting = data as Acting & JsonObject
  const { decision, seq, at_ms, driver: stored } = acting
  const driver = driverOf(deps.drivers, run.mode)
  const isExit = acting.exit !== undefined
  // The first decision of an exit also ends what rests at the venue.
  const hasOrders = decision.orders.length > 0 || (isExit && seq === 1 && driver.hasVenueOrders === true)
  if (!hasOrders) return endWithoutOrders(deps, run, acting)
  const terms = await readRunTerms(deps, run, await findAccount(deps.db, keyOf(run)))
  const ordered: OrderedRun = {
    executionId: run.id,
    seq,
    atMs: at_ms,
    decision,
    isExit,
    caller,
    data: stored,
  }
  const acted = await driver.act(ordered, terms, context)
  const { apply } = acted
  const store = async (tx: Tx) => {
    await apply?.(tx)
    return []
  }
  if ('waitMs' in acted)
    return {
      waitMs: acted.waitMs,
      data: { ...acting, driver: acted.data } as Acting & JsonObject,
      ...(apply && { store }),
    }
  if (isExit && !acted.isFinal) {
    const isWhole = acted.outcome === 'executed' && seq === 1
    return { decideAgainMs: isWhole ? 0 : exitRetryMs, ...(apply && { store }) }
  }
  const { realized } = await fillsOfRun(deps.db, run.id, run.strategy_id)
  const { outcome, error, skipReason } = acted
  return {
    end: { outcome, error, skipReason },
    decision: recordedDecision(acting),
    realizedPnlUsd: realized,
    files: outcome === 'not_executed' ? [] : await deps.reports.make({ run, terms, text: acting.text }),
    store,
  }
}

/**
 * An exit of which something was not filled is sent again after this time. So long it also waits where the venue has
 * nothing any more and the account still has it, because the fills of a stop may be imported a minute later.
 */
const exitRetryMs = 1_000

async function endWithoutOrders(deps: RunnerDeps, run: StrategyRunRow, acting: Acting): Promise<Acted> {
  const skip = skipOfHold(acting.decision)
  const { fills, realized } = await fillsOfRun(deps.db, run.id, run.strategy_id)
  return {
    end: skip
      ? {
          outcome: 'not_executed',
          error: { code: skip.code, message: skip.message, retryable: false },
          skipReason: skip.reason,
        }
      : { outcome: 'executed', error: null, skipReason: null },
    decision: recordedDecision(acting),
    realizedPnlUsd: realized,
    files: fills === 0 ? [] : await reportOfExit(deps, run, acting),
    store: async () => [],
  }
}

/** A run that ends without orders has fills where it closed something before. */
async function reportOfExit(deps: RunnerDeps, run: StrategyRunRow, { text }: Acting) {
  const terms = await readRunTerms(deps, run, await findAccount(deps.db, keyOf(run)))
  return deps.reports.make({ run, terms, text })
}
