import type { Agent } from '#features/wallets/agents.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Action, Policy } from '#kernel/signer.ts'

/** What every trade at the venue begins with. */

export const tradeMs = 60_000
export const slippageDefault = '0.5'

export type AgentNeeds = {
  /** The key that trades for the user now. */
  agentOf: (userId: string) => Promise<Agent | undefined>
  clock: Clock
}

/** Throws 409 and names what is missing. */
export async function demandAgent({ agentOf, clock }: AgentNeeds, userId: string): Promise<Agent> {
  const agent = await agentOf(userId)
  if (agent && (agent.expiresAt === null || agent.expiresAt > clock.now())) return agent
  throw new Fault('setup_incomplete', 'Trading at the venue is not set up: the trading key is not approved', {
    extras: { missing: ['agent_approved'], setup_path: '/v1/perp/setup' },
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
