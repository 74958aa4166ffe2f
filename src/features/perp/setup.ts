import type { TradingKeys } from '#engines/custody/trading-keys.ts'
import type { ActionTaskData } from '#engines/venue/orders/action-outcome.ts'
import { failed } from '#engines/venue/orders/order-failures.ts'
import { clockSkewMs } from '#engines/venue/orders/order-task.ts'
import { type VenueDriverDeps, type VenuePlan, venueDriver } from '#engines/venue/orders/venue-effect.ts'
import type { Clock } from '#kernel/clock.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { oneEffect } from '#kernel/task/effect-steps.ts'
import type { PlannedAction, Policy } from '#kernel/task/signer.ts'
import type { EndResult, RetryRule, StepResult, TaskView, Tx } from '#kernel/task/task.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpInput } from './contract.ts'
import { renewAheadMs } from './key-renewal-lead.ts'
import type { SetupStatus } from './setup-status.ts'

/** This module sets up the trading key, the account and the approval; it can be resumed. */

export type SetupDeps = VenueDriverDeps & {
  venue: Pick<Hyperliquid, 'account' | 'agents' | 'spotHoldings'>
  tradingKeys: TradingKeys
  policy: Pick<Policy, 'check'>
  evmAddressOf: (userId: string) => Promise<string>
  status: (userId: string) => Promise<SetupStatus>
  chainId: string
  clock: Clock
}

/** The venue replaces an agent by a newer one of the same name. */
const agentName = 'portico'
/** The venue limits the lifetime of a key to 180 days. */
const agentLifeMs = 90 * 86_400_000
const setupMs = 10 * 60_000
const ttlMs = 60_000

/**
 * Whether the account exists at the venue: it has a balance, a position or an approved key. An account that
 * was emptied outside the gateway counts as inactive until its next deposit, because the exact check costs as
 * much weight as 30 other requests.
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

/** Admits a set-up. With `exit` the key is renewed for exits, which must work while trading is paused. */
export const admitSetup = (deps: SetupDeps, { exit }: { exit: boolean }) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: async ({ rotate = false }: PerpInput<'setup'>, { userId }) => ({
      rotate,
      action: { ...approvalFacts({ operation: 'perp_setup', exit }), userId, chainId: deps.chainId },
    }),
    async fund({ action: { userId } }) {
      const account = await deps.evmAddressOf(userId)
      const [{ timeMs }, { current }] = await Promise.all([
        deps.venue.account(account),
        deps.tradingKeys.of(userId),
      ])
      return { account, skewMs: clockSkewMs(deps.clock, timeMs), replaces: current?.address ?? null }
    },
    start({ rotate }, { account, skewMs, replaces }) {
      const data: SetupTaskData = { account, ahead_ms: skewMs, exit, rotate, replaces }
      return { first: 'sign', deadlineMs: setupMs, data }
    },
  })

const approvalFacts = ({ operation, exit }: Pick<PlannedAction, 'operation' | 'exit'>) => ({
  operation,
  exit,
  tokens: [],
  recipients: [],
  usdMicros: 0n,
})

export type SetupTaskData = ApprovalTaskData & {
  rotate: boolean
  /**
   * The trading key at the admission; another task may have replaced it since. Tasks of earlier releases lack this
   * field.
   */
  replaces?: string | null
  /** Whether the account was read a second time already. */
  reread?: boolean
}
export type ApprovalTaskData = ActionTaskData & {
  account: string
  ahead_ms: number
  exit?: boolean
  agent?: string
  valid_until_ms?: number
}

/** The approval of a key. The first deposit also approves it, because it creates the account at the venue. */
export const approvalPlan = (
  { account, ahead_ms: skewMs, exit = false }: ApprovalTaskData,
  { agent, operation, now }: { agent: string; operation: string; now: Date },
): VenuePlan<ApprovalTaskData, never> => {
  // The action itself names the expiry of the key, so the expiry need not be read from the venue after the reply.
  const validUntilMs = now.getTime() + skewMs + agentLifeMs
  return {
    account,
    agent: account,
    skewMs,
    ttlMs,
    facts: approvalFacts({ operation, exit }),
    action: { type: 'approve_agent', agent, name: `${agentName} valid_until ${validUntilMs}` },
    data: { agent, valid_until_ms: validUntilMs },
  }
}

/**
 * Proof that the venue approved a key; `validUntilMs` is the expiry that the task requested, or the one in the venue's
 * records.
 */
type ApprovalProof = { validUntilMs: number }

export const approvalSearch =
  ({ venue }: Pick<SetupDeps, 'venue'>) =>
  ({ data: { account, agent = '', valid_until_ms: asked } }: TaskView<ApprovalTaskData>) => ({
    parseReply: (): ApprovalProof | undefined => (asked === undefined ? undefined : { validUntilMs: asked }),
    async lookUp(): Promise<ApprovalProof | undefined> {
      const known = await venue.agents(account)
      const found = known.find(({ address }) => address.toLowerCase() === agent.toLowerCase())
      return found && { validUntilMs: found.validUntilMs }
    },
  })

export const recordApproval =
  (
    { tradingKeys }: Pick<SetupDeps, 'tradingKeys'>,
    { userId, data }: TaskView<ApprovalTaskData>,
    { validUntilMs, now }: ApprovalProof & { now: Date },
  ) =>
  (tx: Tx): Promise<void> =>
    tradingKeys.approved(tx, userId, { address: data.agent ?? '', expiresAt: new Date(validUntilMs), now })

type SetupTask = TaskView<SetupTaskData>

export function setupSteps(deps: SetupDeps) {
  const { venue, tradingKeys, status, rejections } = deps

  /** Ends the set-up as `partial` if only the first deposit is missing; the task of that deposit approves the key. */
  const unfunded = async (userId: string): Promise<EndResult<Partial<SetupTaskData>>> => ({
    end: 'completed',
    outcome: 'partial',
    result: await status(userId),
  })

  const approved = (task: SetupTask, before: SetupStatus, { validUntilMs }: ApprovalProof) => ({
    ...before,
    setup_complete: true,
    account_activated: true,
    last_error: null,
    api_wallet_address: task.data.agent ?? null,
    api_wallet_expires_at: new Date(validUntilMs).toISOString(),
    api_wallet_renews_at: new Date(validUntilMs - renewAheadMs).toISOString(),
    steps: stepKeys.map((key) => ({ key, done: true, error: null })),
  })

  return oneEffect({
    driver: venueDriver<SetupTaskData, ApprovalProof>(deps, {
      actionKey: 'agent',
      search: approvalSearch(deps),
      onRejected({ userId }, { message }) {
        const code = rejections.codeOfRejection(message)
        return code === 'setup_incomplete' ? unfunded(userId) : failed(code, message)
      },
    }),
    async plan({ userId, data }, { now }) {
      const { current, waiting } = await tradingKeys.of(userId)
      if (!waiting) {
        const isExpired = current?.expiresAt != null && current.expiresAt <= now
        const isReplaced = data.replaces !== undefined && current?.address !== data.replaces
        if (current && !isExpired && (!data.rotate || isReplaced))
          return { end: 'completed', outcome: 'executed', result: await status(userId) }
        // Custody signs an approval only for a stored key. If two tasks store a key at once, the first key is kept and
        // both tasks approve it.
        const sealed = await tradingKeys.prepare(userId)
        return { next: 'sign', writes: (tx) => tradingKeys.add(tx, sealed) }
      }
      if (!data.exit && !(await isActive(venue, data.account, { hadKey: current !== undefined })))
        return data.reread ? unfunded(userId) : rereadLater
      return approvalPlan(data, { agent: waiting.address, operation: 'perp_setup', now })
    },
    settle: async (task, proof, { now }) => ({
      end: 'completed',
      outcome: 'executed',
      result: approved(task, await status(task.userId), proof),
      writes: recordApproval(deps, task, { ...proof, now }),
    }),
  })
}

/** Reads the account again after a second, because the first read may lack a recent credit. */
const rereadLater: StepResult<SetupTaskData, 'sign'> = {
  park: { afterMs: 1_000, next: 'sign' },
  state: 'waiting',
  data: { reread: true },
}

/** The set-up retries until its deadline while the request budget of the venue is used up. */
export const setupRetry: RetryRule = {
  attemptsMax: 1_000,
  firstMs: 200,
  maxMs: 3_000,
}

export const stepKeys = ['agent_key', 'account_activated', 'agent_approved'] as const
