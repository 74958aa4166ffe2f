import { waitingMax } from '#durable/approvals/approvals.ts'
import { agents } from '#features/agents/agents.ts'
import { approvals } from '#features/approvals/approvals.ts'
import type { Auth } from '#features/auth/auth.ts'
import type { SignupGrants } from '#features/credits/signup-grants.ts'
import { createSignInLimits } from '#features/oauth/sign-in-limits.ts'
import { recipients } from '#features/policy/recipients.ts'
import { walletsOf } from '#features/wallets/store.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import type { Chains } from './chains.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import type { Mails } from './mails.ts'
import { approvalPage, ownPages } from './own-pages.ts'
import { recipientAddresses, sendingChains } from './recipients.ts'

type PolicyOperationDeps = { core: Core; chains: Chains; custody: Custody; mails: Mails }

/** What people decide: limits, approvals, agents and recipients. */
export const policyOperations = (
  { core, chains, custody, mails }: PolicyOperationDeps,
  { signups, auth }: { signups: SignupGrants; auth: Pick<Auth, 'assertSigned'> },
): Operation[] => [
  ...approvalOperations(core),
  ...custody.policy.operations,
  ...agents({
    ...core,
    events: core.taskEngine.events,
    coolingMs: core.config.COOLING_SECONDS * 1_000,
    limits: createSignInLimits(core),
    policy: custody.policy,
    acts: core.taskEngine.approvals,
    assertSigned: auth.assertSigned,
    signups,
    mailQueue: mails.mailQueue,
    linkPage: () => ownPages(core.config, core.baseUrl)?.link,
  }),
  ...recipients({
    ...core,
    events: core.taskEngine.events,
    coolingMs: core.config.COOLING_SECONDS * 1_000,
    walletsOf,
    chains: sendingChains(chains),
    addresses: recipientAddresses(core.config, chains),
    acts: core.taskEngine.approvals,
    mailQueue: mails.mailQueue,
  }),
]

const approvalOperations = ({ config, baseUrl, db, clock, taskEngine }: Core): Operation[] =>
  approvals({
    approvals: taskEngine.approvals,
    clock,
    db,
    coolingMs: config.COOLING_SECONDS * 1_000,
    page: (approvalId) => approvalPage(config, baseUrl, approvalId),
    waitingMax,
  })
