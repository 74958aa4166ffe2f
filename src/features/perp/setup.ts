import type { ActPlan, VenueActs, Verdict } from '#features/venue/act.ts'
import { failed, failedBy, type PlaceNeeds } from '#features/venue/place.ts'
import { aheadOf } from '#features/venue/trade.ts'
import type { Agent, SealedAgent } from '#features/wallets/agents.ts'
import type { Caller } from '#kernel/caller.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Fault } from '#kernel/fault.ts'
import type { Action, Policy } from '#kernel/signer.ts'
import type {
  Admission,
  EffectUpdate,
  JsonObject,
  Step,
  StepContext,
  StepResult,
  TaskView,
  Tx,
} from '#kernel/task.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { SetupStatus } from './setup-status.ts'

/** A checklist that can be taken up again at any point: key, account, approval. */

export type Agents = {
  of(userId: string): Promise<{ current: Agent | undefined; waiting: Agent | undefined }>
  prepare(userId: string): Promise<SealedAgent>
  add(tx: Tx, sealed: SealedAgent): Promise<void>
  approved(tx: Tx, userId: string, fact: { address: string; expiresAt: Date; now: Date }): Promise<void>
  retired(userId: string, address: string): Promise<void>
}
export type SetupNeeds = {
  venue: Pick<Hyperliquid, 'account' | 'agents' | 'role'>
  acts: VenueActs
  agents: Agents
  policy: Pick<Policy, 'check' | 'reserve'>
  evmAddressOf: (userId: string) => Promise<string>
  status: (userId: string) => Promise<SetupStatus>
  chainId: string
  clock: Clock
} & Pick<PlaceNeeds, 'refusals'>

/** The venue replaces an agent by the next one of the same name. */
const agentName = 'portico'
const setupMs = 10 * 60_000
const ttlMs = 60_000

export const isActive = async (
  venue: Pick<Hyperliquid, 'account' | 'role'>,
  account: string,
): Promise<boolean> => {
  const { accountValueUsd, positions } = await venue.account(account)
  return accountValueUsd !== '0' || positions.length > 0 || (await venue.role(account)) !== 'missing'
}

export async function admitSetup(
  needs: SetupNeeds,
  { rotate = false }: { rotate?: boolean },
  { userId }: Caller,
): Promise<Admission> {
  const { venue, agents, policy, chainId, clock } = needs
  const action: Omit<Action, 'taskId'> = {
    ...{ userId, operation: 'perp_setup', chainId, tokens: [], recipients: [], usdMicros: 0n, exit: false },
  }
  await policy.check(action)
  const account = await needs.evmAddressOf(userId)
  const [{ current, waiting }, state] = await Promise.all([agents.of(userId), venue.account(account)])
  const expired = current?.expiresAt != null && current.expiresAt <= clock.now()
  const fresh = !waiting && (rotate || !current || expired) ? await agents.prepare(userId) : undefined
  return {
    ...{ first: 'begin', deadlineMs: setupMs },
    data: { account, ahead_ms: aheadOf(clock, state.timeMs) },
    async also(tx, taskId) {
      await policy.reserve(tx, { ...action, taskId })
      if (fresh) await agents.add(tx, fresh)
    },
  }
}

type Memory = { account: string; ahead_ms: number; agent?: string }
const memoryOf = (task: TaskView) => task.data as unknown as Memory

type Onward = {
  next: string
  operation: string
  effects?: EffectUpdate[]
  also?: (tx: Tx) => Promise<void>
  refused: (fault: Fault) => StepResult
}

export type Approval = {
  intend(task: TaskView, context: StepContext, agent: string, onward: Onward): Promise<StepResult>
  settle(task: TaskView, context: StepContext): Promise<Verdict<{ validUntilMs: number }>>
  /** In the commit that tells of the approval. */
  store(task: TaskView, context: StepContext, validUntilMs: number): (tx: Tx) => Promise<void>
}

/** Also taken by the first deposit, which is what makes the account known. */
export function approval({ venue, acts, agents }: Pick<SetupNeeds, 'venue' | 'acts' | 'agents'>): Approval {
  return {
    async intend(task, { now }, agent, { next, operation, effects = [], also, refused }) {
      const { account, ahead_ms: aheadMs } = memoryOf(task)
      const plan: ActPlan = {
        ...{ leg: 'agent', account, agent: account, aheadMs, ttlMs },
        facts: { operation, tokens: [], recipients: [], usdMicros: 0n, exit: false },
        action: { type: 'approve_agent', agent, name: agentName },
      }
      const result = await acts.intend(task, plan, {
        ...{ now: now, next, data: { agent }, effects, refused },
      })
      return also ? { ...result, also } : result
    },
    settle: (task, { signal }) => {
      const { account, agent = '' } = memoryOf(task)
      return acts.settle({
        ...{ task, leg: 'agent', signal, read: () => undefined },
        async look() {
          const known = await venue.agents(account)
          const found = known.find(({ address }) => address.toLowerCase() === agent.toLowerCase())
          return found && { validUntilMs: found.validUntilMs }
        },
      })
    },
    store:
      (task, { now }, validUntilMs) =>
      (tx) =>
        agents.approved(tx, task.userId, {
          ...{ address: memoryOf(task).agent ?? '', expiresAt: new Date(validUntilMs), now },
        }),
  }
}

export function settingUp(needs: SetupNeeds): Record<'begin' | 'confirm', Step> {
  const { venue, acts, agents, status, refusals } = needs
  const approving = approval(needs)

  const told = async (task: TaskView, change: Partial<SetupStatus> = {}): Promise<JsonObject> =>
    ({ ...(await status(task.userId)), ...change }) as unknown as JsonObject

  /** What is left is the first deposit, and that approves the key by itself. */
  const unfunded = async (task: TaskView, effects: EffectUpdate[]): Promise<StepResult> => ({
    ...{ end: 'completed', outcome: 'partial', result: await told(task), effects },
  })

  return {
    async begin(task, context) {
      const { account } = memoryOf(task)
      const { waiting } = await agents.of(task.userId)
      if (!waiting) return { end: 'completed', outcome: 'executed', result: await told(task) }
      if (!(await isActive(venue, account))) return unfunded(task, [])
      const onward = { next: 'confirm', operation: 'perp_setup', refused: (fault: Fault) => failedBy(fault) }
      return approving.intend(task, context, waiting.address, onward)
    },

    async confirm(task, context) {
      const verdict = await approving.settle(task, context)
      const { effects } = verdict
      if (verdict.is === 'doubt') return acts.wait(task, 'confirm', effects)
      if (verdict.is !== 'done') {
        const code = refusals.codeOfRefusal(verdict.message)
        return code === 'setup_incomplete' ? unfunded(task, effects) : failed(code, verdict.message, effects)
      }
      const { validUntilMs } = verdict.value
      const change = {
        ...{ setup_complete: true, account_activated: true, last_error: null },
        api_wallet_address: memoryOf(task).agent ?? null,
        api_wallet_expires_at: new Date(validUntilMs).toISOString(),
        steps: stepKeys.map((key) => ({ key, done: true, error: null })),
      }
      return {
        ...{ end: 'completed', outcome: 'executed', result: await told(task, change), effects },
        also: approving.store(task, context, validUntilMs),
      }
    },
  }
}

export const stepKeys = ['agent_key', 'account_activated', 'agent_approved'] as const
