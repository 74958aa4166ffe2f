import type { Agent } from '#features/wallets/agents.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Action, Policy } from '#kernel/signer.ts'
import { type Queryable, send } from '#store/query.ts'

/** What every trade at the venue begins with. */

export const tradeMs = 60_000
export const slippageDefault = '0.5'

export type AgentNeeds = {
  /** The key that trades for the user now. */
  agentOf: (userId: string) => Promise<Agent | undefined>
  on: Queryable
  limits: { minFundUsd: string }
  clock: Clock
}

type NextCall = { operation: string; method: 'POST'; path: string; body: Record<string, unknown> }

/** Tasks that end with an approved key. */
const settingUpKinds = ['perp_setup', 'perp_fund', 'venue_key_renewal']

async function nextOf({ on, limits }: Pick<AgentNeeds, 'on' | 'limits'>, userId: string, expired: boolean) {
  const rows = await send<{ id: string; kind: string; status: string; outcome: string | null }>(
    on,
    `select id, kind, status, outcome from task where user_id = $1 and kind = any($2::text[]) order by id desc limit 20`,
    [userId, settingUpKinds],
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
  // After a set-up what is missing is the first deposit, which has the key approved.
  return { running, next: wasSetUp && !wasFunded && !expired ? fund : setUp }
}

/** Throws 409, and names what is missing, the call that comes next, and the task that is already at it. */
export async function demandAgent(needs: AgentNeeds, userId: string): Promise<Agent> {
  const { agentOf, clock } = needs
  const agent = await agentOf(userId)
  if (agent && (agent.expiresAt === null || agent.expiresAt > clock.now())) return agent
  const { running, next } = await nextOf(needs, userId, agent !== undefined)
  const why = agent ? 'the trading key has expired' : 'the trading key is not approved'
  const then = running
    ? `the task ${running.id} (${running.kind}) is about to do that`
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

/** Reads what the trade needs while the key is looked for; without a key nothing else is told. */
export async function besideAgent<T>(
  needs: AgentNeeds,
  userId: string,
  reading: Promise<T>,
): Promise<{ agent: Agent; read: T }> {
  reading.catch(() => undefined)
  const agent = await demandAgent(needs, userId)
  return { agent, read: await reading }
}

/**
 * What the policy forbids is told before what the account lacks. Where it lacks nothing, the policy is asked with the
 * promise, and only there.
 */
export async function orForbidden<T>(
  policy: Pick<Policy, 'check'>,
  action: Omit<Action, 'taskId'>,
  demands: () => Promise<T>,
): Promise<T> {
  try {
    return await demands()
  } catch (lack) {
    await policy.check(action)
    throw lack
  }
}

/** How far the venue's clock is ahead of ours. */
export const aheadOf = (clock: Clock, venueMs: number): number => Math.max(0, venueMs - clock.now().getTime())
