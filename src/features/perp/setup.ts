import { failed, failedBy } from '#engines/venue/orders/place-order.ts'
import type { PlaceOrderDeps } from '#engines/venue/orders/place-order-deps.ts'
import type {
  ActionOutcome,
  ActionPlan,
  ActionTaskData,
  SignedActions,
  SignedResult,
} from '#engines/venue/orders/signed-action.ts'
import { clockSkewMs } from '#engines/venue/orders/trade-admission.ts'
import { createAdmission } from '#kernel/admission.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Fault } from '#kernel/fault.ts'
import type { PlannedAction, Policy } from '#kernel/signer.ts'
import type {
  EffectUpdate,
  EndResult,
  JsonObject,
  RetryRule,
  StepContext,
  StepResult,
  StepResultOf,
  Steps,
  TaskView,
  Tx,
} from '#kernel/task.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type Agents, renewAheadMs } from './agent-keys.ts'
import type { PerpInput } from './contract.ts'
import type { SetupStatus } from './setup-status.ts'

/** Resumable set-up: trading key, account, approval. */

export type SetupDeps = {
  venue: Pick<Hyperliquid, 'account' | 'agents' | 'spotHoldings'>
  signedActions: SignedActions
  agents: Agents
  policy: Pick<Policy, 'check' | 'reserve'>
  evmAddressOf: (userId: string) => Promise<string>
  status: (userId: string) => Promise<SetupStatus>
  onNotExecuted: (tx: Tx, taskId: string) => Promise<void>
  chainId: string
  clock: Clock
} & Pick<PlaceOrderDeps, 'rejections'>

/** The venue replaces an agent by a newer one of the same name. */
const agentName = 'portico'
/** The venue limits the lifetime of a key to 180 days. */
const agentLifeMs = 90 * 86_400_000
const setupMs = 10 * 60_000
const ttlMs = 60_000

/**
 * Whether the account exists at the venue: it has a balance, a position or an approved key. An account that was emptied
 * outside the gateway counts as inactive until its next deposit, because the exact check costs as much weight as 30
 * other requests.
 */
export const isActive = async (
  venue: Pick<Hyperliquid, 'account' | 'spotHoldings'>,
  account: string,
  { hadKey }: { hadKey: boolean },
): Promise<boolean> => {
  if (hadKey) return true
  const { accountValueUsd, positions, unread } = await venue.account(account)
  if (accountValueUsd !== '0' || positions.length + unread.length > 0) return true
  const spot = await venue.spotHoldings(account)
  return spot.balances.length + spot.unread.length > 0
}

/** `exit`: a renewed key opens no position, and exits need it while trading is paused. */
export const admitSetup = (deps: SetupDeps, { exit }: { exit: boolean }) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: async ({ rotate = false }: PerpInput<'setup'>, { userId }) => ({
      rotate,
      action: setupAction(deps, { userId, exit }),
    }),
    fund: ({ action, rotate }) => prepareKey(deps, { userId: action.userId, rotate }),
    start(_request, { account, timeMs, newAgent }) {
      const data: SetupTaskData = { account, ahead_ms: clockSkewMs(deps.clock, timeMs), exit }
      return {
        first: 'begin',
        deadlineMs: setupMs,
        data,
        async writes(tx) {
          if (newAgent) await deps.agents.add(tx, newAgent)
        },
      }
    },
  })

const setupAction = (
  { chainId }: SetupDeps,
  { userId, exit }: Pick<PlannedAction, 'userId' | 'exit'>,
): PlannedAction => ({
  userId,
  operation: 'perp_setup',
  chainId,
  tokens: [],
  recipients: [],
  usdMicros: 0n,
  exit,
})

/** A new key where the user has none that is valid or waits for its approval. */
async function prepareKey(
  { venue, agents, clock, evmAddressOf }: SetupDeps,
  { userId, rotate }: { userId: string; rotate: boolean },
) {
  const account = await evmAddressOf(userId)
  const [{ current, waiting }, { timeMs }] = await Promise.all([agents.of(userId), venue.account(account)])
  const expired = current?.expiresAt != null && current.expiresAt <= clock.now()
  const newAgent = !waiting && (rotate || !current || expired) ? await agents.prepare(userId) : undefined
  return { account, timeMs, newAgent }
}

export type SetupTaskData = ApprovalTaskData & {
  /** The state of the account was read again. */
  reread?: boolean
}
export type ApprovalTaskData = ActionTaskData & {
  account: string
  ahead_ms: number
  exit?: boolean
  agent?: string
  valid_until_ms?: number
}

type ApprovalContinuation<Name extends string> = {
  next: Name
  operation: string
  effects?: EffectUpdate[]
  writes?: (tx: Tx) => Promise<void>
  onRefused: (fault: Fault) => StepResultOf<Record<never, never>, Name>
}

export type Approval = {
  sign<Name extends string>(
    task: TaskView<ApprovalTaskData>,
    context: StepContext,
    agent: string,
    continuation: ApprovalContinuation<Name>,
  ): Promise<SignedResult<ApprovalTaskData, Name>>
  confirm(
    task: TaskView<ApprovalTaskData>,
    context: StepContext,
  ): Promise<ActionOutcome<{ validUntilMs: number }>>
  /** Runs in the commit that reports the approval. */
  recordApproval(
    task: TaskView<ApprovalTaskData>,
    context: StepContext,
    validUntilMs: number,
  ): (tx: Tx) => Promise<void>
}

/** The first deposit also approves the key, because it creates the account at the venue. */
export function createApproval({
  venue,
  signedActions,
  agents,
}: Pick<SetupDeps, 'venue' | 'signedActions' | 'agents'>): Approval {
  return {
    async sign(task, { now }, agent, { next, operation, effects = [], writes, onRefused }) {
      const { account, ahead_ms: skewMs, exit = false } = task.data
      // The action names the expiry, so the reply needs no look-up of it.
      const validUntilMs = now.getTime() + skewMs + agentLifeMs
      const plan: ActionPlan = {
        actionKey: 'agent',
        account,
        agent: account,
        skewMs,
        ttlMs,
        facts: { operation, tokens: [], recipients: [], usdMicros: 0n, exit },
        action: { type: 'approve_agent', agent, name: `${agentName} valid_until ${validUntilMs}` },
      }
      const result = await signedActions.sign(task, plan, {
        now: now,
        next,
        data: { agent, valid_until_ms: validUntilMs },
        effects,
        onRefused,
      })
      return writes ? { ...result, writes } : result
    },
    confirm: (task, { signal }) => {
      const { account, agent = '', valid_until_ms: asked } = task.data
      return signedActions.confirm({
        task,
        actionKey: 'agent',
        signal,
        parseReply: () => (asked === undefined ? undefined : { validUntilMs: asked }),
        async lookUp() {
          const known = await venue.agents(account)
          const found = known.find(({ address }) => address.toLowerCase() === agent.toLowerCase())
          return found && { validUntilMs: found.validUntilMs }
        },
      })
    },
    recordApproval:
      (task, { now }, validUntilMs) =>
      (tx) =>
        agents.approved(tx, task.userId, {
          address: task.data.agent ?? '',
          expiresAt: new Date(validUntilMs),
          now,
        }),
  }
}

export function setupSteps(deps: SetupDeps): Steps<SetupTaskData, 'begin' | 'confirm'> {
  const { venue, signedActions, agents, status, rejections } = deps
  const approvalSteps = createApproval(deps)

  const statusView = async (
    task: TaskView<SetupTaskData>,
    change: Partial<SetupStatus> = {},
  ): Promise<JsonObject> => ({ ...(await status(task.userId)), ...change })

  /** Only the first deposit is missing; its task approves the key. */
  const unfunded = async (
    task: TaskView<SetupTaskData>,
    effects: EffectUpdate[],
  ): Promise<EndResult<Partial<SetupTaskData>>> => ({
    end: 'completed',
    outcome: 'partial',
    result: await statusView(task),
    effects,
  })

  const approved = async (
    task: TaskView<SetupTaskData>,
    context: StepContext,
    { validUntilMs, effects }: { validUntilMs: number; effects: EffectUpdate[] },
  ): Promise<EndResult<Partial<SetupTaskData>>> => {
    const change = {
      setup_complete: true,
      account_activated: true,
      last_error: null,
      api_wallet_address: task.data.agent ?? null,
      api_wallet_expires_at: new Date(validUntilMs).toISOString(),
      api_wallet_renews_at: new Date(validUntilMs - renewAheadMs).toISOString(),
      steps: stepKeys.map((key) => ({ key, done: true, error: null })),
    }
    return {
      end: 'completed',
      outcome: 'executed',
      result: await statusView(task, change),
      effects,
      writes: approvalSteps.recordApproval(task, context, validUntilMs),
    }
  }

  return {
    async begin(task, context) {
      const { account } = task.data
      const { current, waiting } = await agents.of(task.userId)
      const { exit = false } = task.data
      if (!waiting) return { end: 'completed', outcome: 'executed', result: await statusView(task) }
      if (!exit && !(await isActive(venue, account, { hadKey: current !== undefined })))
        return task.data.reread ? unfunded(task, []) : rereadLater
      return approvalSteps.sign(task, context, waiting.address, {
        next: 'confirm',
        operation: 'perp_setup',
        onRefused: (fault) => failedBy(fault),
      })
    },

    async confirm(task, context) {
      const actionOutcome = await approvalSteps.confirm(task, context)
      return signedActions.matchOutcome(task, actionOutcome, {
        poll: 'confirm',
        executed: ({ validUntilMs }, effects) => approved(task, context, { validUntilMs, effects }),
        async notExecuted({ message, effects }) {
          const code = rejections.codeOfRejection(message)
          return code === 'setup_incomplete' ? unfunded(task, effects) : failed(code, message, effects)
        },
      })
    },
  }
}

/** A recent credit may be missing from a read. */
const rereadLater: StepResult<SetupTaskData, 'begin'> = {
  park: { afterMs: 1_000, next: 'begin' },
  state: 'waiting',
  data: { reread: true },
}

/** Retries until the deadline while the request budget of the venue is used up. */
export const setupRetry: RetryRule = {
  attemptsMax: 1_000,
  firstMs: 200,
  maxMs: 3_000,
}

export const stepKeys = ['agent_key', 'account_activated', 'agent_approved'] as const
