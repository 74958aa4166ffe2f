import { waitingMax } from '#durable/approvals/approvals.ts'
import { readWallets } from '#engines/custody/wallet-store.ts'
import { createAgents } from '#features/agents/agents.ts'
import { agentDeletions } from '#features/agents/retention.ts'
import { createApprovals } from '#features/approvals/approvals.ts'
import type { Auth } from '#features/auth/auth.ts'
import type { SignupGrants } from '#features/credits/signup-grants.ts'
import { createSignInLimits } from '#features/oauth/sign-in-limits.ts'
import { killSwitchMetrics } from '#features/policy/kill-switch.ts'
import { createRecipients } from '#features/policy/recipients.ts'
import { policyDeletions, policyTaskTables } from '#features/policy/retention.ts'
import { endSchedules } from '#features/schedules/access-end.ts'
import { approvalPage, ownPages } from './page-urls.ts'
import { recipientAddresses, sendingChains } from './recipient-addresses.ts'
import type { Section } from './section.ts'
import type { Parts } from './section-parts.ts'

type PolicyParts = Pick<Parts, 'core' | 'scheduleClock' | 'chains' | 'custody' | 'mails'>

/** Opens the sections in which people decide: limits, approvals, agents and recipients. */
export const openPolicy = (
  { core, scheduleClock, chains, custody, mails }: PolicyParts,
  { signups, auth }: { signups: SignupGrants; auth: Pick<Auth, 'assertSigned'> },
): Section[] => {
  const { config, baseUrl, taskEngine } = core
  const shared = {
    ...core,
    events: taskEngine.events,
    acts: taskEngine.approvals,
    coolingMs: config.COOLING_SECONDS * 1_000,
    mailQueue: mails.mailQueue,
  }
  const approvalOperations = createApprovals({
    ...shared,
    approvals: taskEngine.approvals,
    page: (approvalId) => approvalPage(config, baseUrl, approvalId),
    waitingMax,
  })
  const agentOperations = createAgents({
    ...shared,
    limits: createSignInLimits(core),
    policy: custody.policy,
    endSchedules: (act, { userId, ...ended }) =>
      endSchedules(act.tx, {
        ...ended,
        userId,
        slotsAt: scheduleClock.now(),
        random: core.random,
        cancelTasks: (taskIds) => taskEngine.tasks.cancelNotSent(userId, taskIds, act),
      }),
    assertSigned: auth.assertSigned,
    signups,
    linkPage: () => ownPages(config, baseUrl)?.link,
  })
  const recipientOperations = createRecipients({
    ...shared,
    walletsOf: readWallets,
    chains: sendingChains(chains),
    addresses: recipientAddresses(config, chains),
  })
  return [
    { part: 'wallets', operations: approvalOperations },
    {
      operations: custody.policy.operations,
      deletions: policyDeletions,
      taskTables: policyTaskTables,
      metrics: { kill_switch: killSwitchMetrics(core.db) },
    },
    { part: 'auth', operations: agentOperations, deletions: agentDeletions },
    { part: 'wallets', operations: recipientOperations },
  ]
}
