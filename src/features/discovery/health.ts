import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import type * as T from '#kernel/contract/schema.ts'
import type { contract, healthStates } from './contract.ts'

export type Health = (typeof healthStates)[number]
export type HealthBody = T.Static<typeof contract.entries.health.output>
export type HealthReport = { body: HealthBody; down: boolean }

export type RunnerFacts = { queueDepth: number; oldestPendingSeconds: number | null }
/**
 * `holds` lists the money holds with their reasons. `isReplicated` is null if no replication is required of the
 * database.
 */
export type MoneyFacts = {
  holds: { scope: string; reason: string; since: Date }[]
  isReplicated: boolean | null
}
export type UpstreamFacts = { status: Health; lastOkAt: Date | null }

type HealthDeps = {
  version: string
  environment: string
  clock: Clock
  /** Queries the database; the promise rejects or hangs while the database is unavailable. */
  store: () => Promise<unknown>
  runner: () => Promise<RunnerFacts>
  upstreams: () => Promise<Readonly<Record<string, UpstreamFacts>>>
  /** The last known result of unwrapping a wallet key. */
  custody: () => Health
  money: () => MoneyFacts
  /** Since when the operator's kill switch stops all users; null while it is off. */
  stoppedSince: () => Promise<Date | null>
  checkMsMax?: number
}

const checkMsDefault = 1_500
/** The endpoint is public, so one result is reused for this long. */
const freshMs = 500
const pendingSecondsMax = 60

/** Runs all checks at once. A check that hangs ends at the time limit and counts as down. */
export function createHealthCheck(deps: HealthDeps): () => HealthReport | Promise<HealthReport> {
  const startedMs = performance.now()
  const uptimeSeconds = () => Math.floor((performance.now() - startedMs) / 1_000)
  const report = createCachedValue(() => checkAll(deps, uptimeSeconds()), {
    ttlMs: freshMs,
    nowMs: monotonicMs,
  })
  return () => report.peek() ?? report.get()
}

async function checkAll(deps: HealthDeps, uptimeSeconds: number): Promise<HealthReport> {
  const ms = deps.checkMsMax ?? checkMsDefault
  const [store, runner, upstreams, stoppedSince = null] = await Promise.all([
    timed(deps.store, ms),
    within(deps.runner, ms),
    within(deps.upstreams, ms),
    within(deps.stoppedSince, ms),
  ])
  const checks = {
    store: { status: store === undefined ? ('down' as const) : ('ok' as const), latency_ms: store ?? null },
    runner: {
      status: runnerHealth(runner),
      queue_depth: runner?.queueDepth ?? null,
      oldest_pending_seconds: runner?.oldestPendingSeconds ?? null,
    },
    custody: { status: deps.custody() },
    money: moneyCheck(deps.money(), stoppedSince),
    upstreams: Object.fromEntries(
      Object.entries(upstreams ?? {}).map(([name, { status, lastOkAt }]) => [
        name,
        { status, last_ok_at: lastOkAt?.toISOString() ?? null },
      ]),
    ),
  }
  const down = store === undefined
  const isHealthy =
    upstreams !== undefined &&
    checks.runner.status === 'ok' &&
    checks.custody.status === 'ok' &&
    checks.money.status === 'ok' &&
    Object.values(checks.upstreams).every(({ status }) => status === 'ok')
  const { version, environment, clock } = deps
  const status = down ? 'down' : isHealthy ? 'ok' : 'degraded'
  const time = clock.now().toISOString()
  return { body: { status, version, environment, time, uptime_seconds: uptimeSeconds, checks }, down }
}

function moneyCheck({ holds, isReplicated }: MoneyFacts, stoppedSince: Date | null) {
  const isDegraded = holds.length > 0 || stoppedSince !== null || isReplicated === false
  return {
    status: isDegraded ? ('degraded' as const) : ('ok' as const),
    on_hold: holds.map(({ scope, reason, since }) => ({ scope, reason, since: since.toISOString() })),
    stopped_since: stoppedSince?.toISOString() ?? null,
    replicated: isReplicated,
  }
}

function runnerHealth(facts: RunnerFacts | undefined): Health {
  if (!facts) return 'down'
  return (facts.oldestPendingSeconds ?? 0) > pendingSecondsMax ? 'degraded' : 'ok'
}

async function timed(check: () => Promise<unknown>, ms: number): Promise<number | undefined> {
  const startedMs = performance.now()
  return within(async () => {
    await check()
    return Math.round(performance.now() - startedMs)
  }, ms)
}

/** Returns the result of a check, or undefined if the check failed or timed out. */
const within = <R>(check: () => Promise<R>, ms: number): Promise<R | undefined> =>
  withTimeLimit(Promise.try(check), ms).catch(() => undefined)
