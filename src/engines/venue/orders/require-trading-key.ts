import type { TradingKeys } from '#engines/custody/trading-keys.ts'
import { findAccount } from '#engines/venue/records/account-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Agent } from '#kernel/money/venue-actions.ts'
import { type Queryable, query } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'

/** Admission checks that every trade at the venue shares. */

export const tradeDeadlineMs = 60_000

export type AgentDeps = {
  tradingKeys: Pick<TradingKeys, 'of'>
  db: Queryable
  limits: { minFundUsd: string }
  clock: Clock
}

type NextCall = { operation: string; method: 'POST'; path: string; body: Record<string, unknown> }

/** Tasks of these kinds end with an approved trading key. */
const setupKinds = ['perp_setup', 'perp_fund', 'venue_key_renewal']

async function nextSetupCall(
  { db, limits }: Pick<AgentDeps, 'db' | 'limits'>,
  userId: string,
  { expired }: { expired: boolean },
) {
  const rows = await query<{ id: string; kind: string; status: string; outcome: string | null }>(
    db,
    // A range per kind makes the planner use the index by kind, however many other tasks the user has.
    `select t.* from unnest($2::text[]) as k (name) cross join lateral (
       select id, kind, status, outcome from task where user_id = $1 and kind >= k.name and kind <= k.name
       order by kind, id desc limit 20) t
     order by t.id desc`,
    [userId, setupKinds],
  )
  const running = rows.find(({ status }) => status === 'pending' || status === 'running')
  const wasSetUp = rows.some(({ kind, outcome }) => kind === 'perp_setup' && outcome !== null)
  const wasFunded = rows.some(({ kind, outcome }) => kind === 'perp_fund' && outcome === 'executed')
  const setUp: NextCall = { operation: 'perp_setup', method: 'POST', path: '/v1/perp/setup', body: {} }
  const fund: NextCall = {
    operation: 'perp_fund',
    method: 'POST',
    path: '/v1/perp/fund',
    body: { amount_usd: limits.minFundUsd },
  }
  // After a set-up only the first deposit is missing, and its task approves the key.
  return { running, next: wasSetUp && !wasFunded && !expired ? fund : setUp }
}

/** Returns the user's trading key; throws 409 with the missing step, the next call and a task completing it. */
export async function requireAgent(deps: AgentDeps, userId: string): Promise<Agent> {
  const { tradingKeys, clock } = deps
  const { current: agent } = await tradingKeys.of(userId)
  if (agent && (agent.expiresAt === null || agent.expiresAt > clock.now())) return agent
  const { running, next } = await nextSetupCall(deps, userId, { expired: agent !== undefined })
  const why = agent ? 'the trading key has expired' : 'the trading key is not approved'
  const then = running
    ? `the task ${running.id} (${running.kind}) is running and may complete it: wait for it`
    : `call ${next.method} ${next.path} with ${JSON.stringify(next.body)}`
  throw new Fault('setup_incomplete', `Trading at the venue is not set up: ${why}; ${then}`, {
    extras: {
      missing: ['agent_approved'],
      setup_path: '/v1/perp/setup',
      next_call: next,
      running_task_id: running?.id ?? null,
    },
  })
}

/** Runs reads only after the check of the trading key: users without a key must not use up the request budget. */
export async function withAgent<T>(
  deps: AgentDeps,
  userId: string,
  read: () => Promise<T>,
): Promise<{ agent: Agent; read: T }> {
  const agent = await requireAgent(deps, userId)
  return { agent, read: await read() }
}

type ExitDeps<Venue> = Pick<AgentDeps, 'tradingKeys' | 'db'> & {
  venue: Venue & Pick<Hyperliquid, 'withUrgency'>
}

/**
 * Returns the venue for the reads of an exit. A user who is unknown at the venue does not get the request budget that
 * is reserved for exits.
 */
export async function venueForExit<Venue>(
  { venue, tradingKeys, db }: ExitDeps<Venue>,
  userId: string,
): Promise<Venue | Hyperliquid> {
  const { current } = await tradingKeys.of(userId)
  const isKnown = current !== undefined || (await findAccount(db, userId)) !== undefined
  return isKnown ? venue : venue.withUrgency('admission')
}
