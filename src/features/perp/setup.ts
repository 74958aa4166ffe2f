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
  RetryRule,
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
  venue: Pick<Hyperliquid, 'account' | 'agents' | 'spotHoldings'>
  acts: VenueActs
  agents: Agents
  policy: Pick<Policy, 'check' | 'reserve'>
  evmAddressOf: (userId: string) => Promise<string>
  status: (userId: string) => Promise<SetupStatus>
  released: (tx: Tx, taskId: string) => Promise<void>
  chainId: string
  clock: Clock
} & Pick<PlaceNeeds, 'refusals'>

/** The venue replaces an agent by the next one of the same name. */
const agentName = 'portico'
/** A key is replaced so long before it expires. */
export const renewAheadMs = 14 * 86_400_000
/** The venue lets a key live for 180 days at most. */
const agentLifeMs = 90 * 86_400_000
const setupMs = 10 * 60_000
const ttlMs = 60_000

/**
 * Whether the venue knows the account: it has something there, or it approved a key before. An account that became
 * empty outside of the gateway counts as unknown, which its next deposit ends; asking for it would cost as much as 30
 * other questions.
 */
export const isActive = async (
  venue: Pick<Hyperliquid, 'account' | 'spotHoldings'>,
  account: string,
  hadKey: boolean,
): Promise<boolean> => {
  if (hadKey) return true
  const { accountValueUsd, positions, unread } = await venue.account(account)
  if (accountValueUsd !== '0' || positions.length + unread.length > 0) return true
  const spot = await venue.spotHoldings(account)
  return spot.balances.length + spot.unread.length > 0
}

export async function admitSetup(
  needs: SetupNeeds,
  { rotate = false }: { rotate?: boolean },
  { userId }: Pick<Caller, 'userId'>,
  // A renewed key opens nothing, and exits need it also while trading is paused.
  { exit = false }: { exit?: boolean } = {},
): Promise<Admission> {
  const { venue, agents, policy, chainId, clock } = needs
  const action: Omit<Action, 'taskId'> = {
    userId,
    operation: 'perp_setup',
    chainId,
    tokens: [],
    recipients: [],
    usdMicros: 0n,
    exit,
  }
  await policy.check(action)
  const account = await needs.evmAddressOf(userId)
  const [{ current, waiting }, state] = await Promise.all([agents.of(userId), venue.account(account)])
  const expired = current?.expiresAt != null && current.expiresAt <= clock.now()
  const fresh = !waiting && (rotate || !current || expired) ? await agents.prepare(userId) : undefined
  return {
    first: 'begin',
    deadlineMs: setupMs,
    data: { account, ahead_ms: aheadOf(clock, state.timeMs), exit },
    async also(tx, taskId) {
      await policy.reserve(tx, { ...action, taskId })
      if (fresh) await agents.add(tx, fresh)
    },
  }
}

type Memory = {
  account: string
  ahead_ms: number
  exit?: boolean
  agent?: string
  valid_until_ms?: number
}
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
      const { account, ahead_ms: aheadMs, exit = false } = memoryOf(task)
      // The end is named in the action, so that the reply alone tells how long the key lives.
      const validUntilMs = now.getTime() + aheadMs + agentLifeMs
      const plan: ActPlan = {
        leg: 'agent',
        account,
        agent: account,
        aheadMs,
        ttlMs,
        facts: { operation, tokens: [], recipients: [], usdMicros: 0n, exit },
        action: { type: 'approve_agent', agent, name: `${agentName} valid_until ${validUntilMs}` },
      }
      const result = await acts.intend(task, plan, {
        now: now,
        next,
        data: { agent, valid_until_ms: validUntilMs },
        effects,
        refused,
      })
      return also ? { ...result, also } : result
    },
    settle: (task, { signal }) => {
      const { account, agent = '', valid_until_ms: asked } = memoryOf(task)
      return acts.settle({
        task,
        leg: 'agent',
        signal,
        read: () => (asked === undefined ? undefined : { validUntilMs: asked }),
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
          address: memoryOf(task).agent ?? '',
          expiresAt: new Date(validUntilMs),
          now,
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
    end: 'completed',
    outcome: 'partial',
    result: await told(task),
    effects,
  })

  return {
    async begin(task, context) {
      const { account } = memoryOf(task)
      const { current, waiting } = await agents.of(task.userId)
      const { exit = false } = memoryOf(task)
      if (!waiting) return { end: 'completed', outcome: 'executed', result: await told(task) }
      if (!exit && !(await isActive(venue, account, current !== undefined)))
        return task.data.reread ? unfunded(task, []) : rereadLater
      const onward = { next: 'confirm', operation: 'perp_setup', refused: (fault: Fault) => failedBy(fault) }
      return approving.intend(task, context, waiting.address, onward)
    },

    async confirm(task, context) {
      const verdict = await approving.settle(task, context)
      const { effects } = verdict
      if (verdict.is === 'doubt') return acts.wait(task, 'confirm', verdict)
      if (verdict.is !== 'done') {
        const code = refusals.codeOfRefusal(verdict.message)
        return code === 'setup_incomplete' ? unfunded(task, effects) : failed(code, verdict.message, effects)
      }
      const { validUntilMs } = verdict.value
      const change = {
        setup_complete: true,
        account_activated: true,
        last_error: null,
        api_wallet_address: memoryOf(task).agent ?? null,
        api_wallet_expires_at: new Date(validUntilMs).toISOString(),
        api_wallet_renews_at: new Date(validUntilMs - renewAheadMs).toISOString(),
        steps: stepKeys.map((key) => ({ key, done: true, error: null })),
      }
      return {
        end: 'completed',
        outcome: 'executed',
        result: await told(task, change),
        effects,
        also: approving.store(task, context, validUntilMs),
      }
    },
  }
}

/** A credit of a moment ago is not in every read yet. */
const rereadLater: StepResult = {
  park: { afterMs: 1_000, next: 'begin' },
  state: 'waiting',
  data: { reread: true },
}

/** While the request weight of the venue is used up the set-up waits, and ends at its deadline. */
export const setupRetry: RetryRule = {
  attemptsMax: 1_000,
  firstMs: 200,
  mostMs: 3_000,
}

export const stepKeys = ['agent_key', 'account_activated', 'agent_approved'] as const
