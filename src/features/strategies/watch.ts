import type { Transact } from '#durable/transactions.ts'
import { type PacedJob, startPacedJob } from '#kernel/async/paced-job.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import { assetsInUse } from '#market/strategies/paper-run.ts'
import { type Queryable, query } from '#store/query.ts'
import type { StrategyAccountRow } from '#store/tables/strategies.ts'
import {
  accountOf,
  lockAccount,
  type StrategyAccount,
  storeAccount,
  storeEquity,
  storeFills,
} from './account-store.ts'
import { type DayEndOf, exitDue, readEndState } from './exit-due.ts'
import { tripEvents } from './guard-trips.ts'
import type { ModeDriver, ModeReading, StrategyTerms } from './mode-driver.ts'
import { type Drivers, equityText, nextWatch } from './runner.ts'
import type { StartExit } from './start-exit.ts'
import type { ReadTerms } from './terms.ts'

/**
 * Watches the accounts of strategies in which anything is open or rests: it applies fills, reads the guards, and starts
 * the exit where a guard or the end of a day calls for one.
 */

export type WatchDeps = {
  db: Queryable
  transact: Transact
  /** The clock of schedules. */
  clock: Clock
  log: Log
  isOnDuty: () => boolean
  readTerms: ReadTerms
  drivers: Drivers
  startExit: StartExit
  dayEndOf: DayEndOf
  /** Adds events to the log of a user. */
  appendEvents(tx: Tx, userId: string, events: readonly NewEvent[]): Promise<void>
  /** Runs after a commit that has added events, or has queued an exit. */
  onCommitted(userId: string): void
}

const batchMax = 64
/** Accounts of one batch that are read at a time. */
const readsMax = 16
/** A position without its stop has to be found within a look and this time. */
const pollMs = 500
/** The longest pause. It is shorter than the time to the first look at an account that is watched from now on. */
const pollMsMax = 2_000
/** An instance that is not on duty looks whether accounts are overdue. */
const standInPollMs = 5_000
const retryMs = 2_000
const equityMs = 15 * 60_000

export const startWatch = (deps: WatchDeps): PacedJob =>
  startPacedJob(() => runOnce(deps), {
    retryMs,
    onError: (error) => deps.log.warn({ error }, 'watch of strategies failed; the next turn tries again'),
  })

/** Looks at the accounts that are due, and returns the time until the next turn. */
export async function runOnce(deps: WatchDeps): Promise<number> {
  const { accounts, nextAt } = await claimDue(deps)
  for (let from = 0; from < accounts.length; from += readsMax)
    await Promise.all(accounts.slice(from, from + readsMax).map((account) => lookUnlessFailed(deps, account)))
  if (accounts.length === batchMax) return 0
  if (!deps.isOnDuty()) return standInPollMs
  const nextMs = nextAt === null ? pollMsMax : nextAt.getTime() - deps.clock.now().getTime()
  return Math.max(pollMs, Math.min(nextMs, pollMsMax))
}

type Claimed = {
  accounts: StrategyAccount[]
  /** When the next account is due, in the past where another transaction has it; null if no other one is watched. */
  nextAt: Date | null
}

/** Moves due accounts to their next time, so that one instance alone looks at each now, and the next one if it dies. */
async function claimDue({ db, clock, drivers }: WatchDeps): Promise<Claimed> {
  const intervals = Object.entries(drivers)
  const modes = intervals.map(([mode]) => mode)
  const rows = await query<StrategyAccountRow & { next_at: Date | null }>(
    db,
    `with claimed as (
       update strategy_account a set watch_at = $1::timestamptz + make_interval(secs => w.ms / 1000.0)
       from unnest($2::text[], $3::integer[]) as w (mode, ms), (
         select id from strategy_account where watch_at <= $1 and mode = any($2)
         order by watch_at limit $4 for no key update skip locked) due
       where a.id = due.id and a.mode = w.mode returning a.*)
     select claimed.*, next_at from (
       select min(watch_at) as next_at from strategy_account
       where mode = any($2) and id not in (select id from claimed)) n
     left join claimed on true`,
    [clock.now(), modes, intervals.map(([, { watchMs }]) => watchMs), batchMax],
  )
  const found = rows.filter(({ id }) => id !== null)
  return { accounts: found.map(({ next_at: _, ...row }) => accountOf(row)), nextAt: rows[0]?.next_at ?? null }
}

const lookUnlessFailed = (deps: WatchDeps, account: StrategyAccount): Promise<void> =>
  lookAt(deps, account).catch((error: unknown) =>
    deps.log.warn(
      { error, strategy: account.strategy_id, mode: account.mode },
      'account of a strategy not looked at; it is tried again',
    ),
  )

/** Brings an account up to date, and starts its exit where one is due. */
async function lookAt(deps: WatchDeps, account: StrategyAccount): Promise<void> {
  const { strategy_id: strategyId, version, mode, user_id: userId } = account
  const driver = deps.drivers[mode]
  if (!driver) return
  const nowMs = deps.clock.now().getTime()
  const assets = assetsInUse(account.run)
  const terms = await deps.readTerms({ strategyId, version, mode, assets, allowsDelisted: true })
  const reading = await driver.read(account, terms, { nowMs, userId, purpose: 'watch' })
  const looked = await deps.transact((tx) => applyLook(deps, tx, { account, terms, driver, reading, nowMs }))
  if (!looked) return
  const reason = await driver.tend?.(looked.account, terms, { nowMs })
  const exit =
    reason === undefined
      ? undefined
      : await deps.transact((tx) => deps.startExit(tx, { strategyId, mode }, reason))
  if (looked.hasNews || exit !== undefined) deps.onCommitted(userId)
}

type Look = {
  account: StrategyAccount
  terms: StrategyTerms
  driver: ModeDriver
  reading: ModeReading
  nowMs: number
}

type Looked = {
  account: StrategyAccount
  /** Whether events were added or an exit was started. */
  hasNews: boolean
}

/** Returns undefined if a run of another version has changed the account since it was claimed. */
async function applyLook(
  deps: WatchDeps,
  tx: Tx,
  { account: { strategy_id, mode, version }, terms, driver, reading, nowMs }: Look,
): Promise<Looked | undefined> {
  const locked = await lockAccount(tx, { strategy_id, mode })
  if (!locked || locked.version !== version) return undefined
  const synced = await reading.apply(tx, locked)
  const endState = await readEndState(tx, locked)
  const account = endState.hasStopped ? withoutEntries(synced.account) : synced.account
  const hasChanged = synced.hasChanged || account !== synced.account
  await storeFills(tx, synced.fills)
  await storeUnlessSame(tx, { locked, account, terms, driver, nowMs, hasChanged })
  const events = await tripEvents(tx, { before: locked.run, after: account.run, terms })
  const { dayEndOf } = deps
  const reason = exitDue(account, { state: reading.stateOf(account, nowMs), terms, endState, dayEndOf })
  const exit =
    reason === undefined ? undefined : await deps.startExit(tx, { strategyId: strategy_id, mode }, reason)
  await deps.appendEvents(tx, terms.userId, events)
  return { account, hasNews: exit !== undefined || events.length > 0 }
}

const withoutEntries = (account: StrategyAccount): StrategyAccount =>
  account.mode === 'live' || account.run.resting.length === 0
    ? account
    : { ...account, run: { ...account.run, resting: [] } }

type Stored = {
  locked: StrategyAccount
  account: StrategyAccount
  terms: StrategyTerms
  driver: ModeDriver
  nowMs: number
  hasChanged: boolean
}

/** Prices that move and change nothing are stored with the worth of each quarter of an hour. */
async function storeUnlessSame(tx: Tx, stored: Stored): Promise<void> {
  const { locked, account, terms, driver, nowMs, hasChanged } = stored
  const watchAt = nextWatch(account, driver, nowMs)
  const quarter = (ms: number): number => Math.floor(ms / equityMs)
  const isQuarter = quarter(nowMs) > quarter(locked.updated_at.getTime())
  if (!hasChanged && !isQuarter && watchAt !== null) return
  const at = new Date(nowMs)
  await storeAccount(tx, { ...account, watch_at: watchAt }, at)
  if (isQuarter || watchAt === null)
    await storeEquity(
      tx,
      { strategy_id: account.strategy_id, mode: account.mode },
      { usd: equityText(account, terms), at },
    )
}
