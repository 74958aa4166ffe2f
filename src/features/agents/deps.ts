import type { EventLog } from '#durable/events/event-log.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import type { AssertSigned } from '#features/auth/signed-act.ts'
import type { SignupGrants } from '#features/credits/signup-grants.ts'
import type { SignInLimits } from '#features/oauth/sign-in-limits.ts'
import type { PolicyFeature } from '#features/policy/policy.ts'
import type { Clock } from '#kernel/clock.ts'
import type { ActScope } from '#kernel/contract/caller.ts'
import type { Random } from '#kernel/id.ts'
import type { ActRequests } from '#kernel/task/act-approval-request.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'

export type AgentsDeps = {
  db: Queryable
  clock: Clock
  random: Random
  events: Pick<EventLog, 'add' | 'notify'>
  /** How long an agent may end a new link without its person. */
  coolingMs: number
  limits: SignInLimits
  policy: Pick<PolicyFeature, 'endLink' | 'dropPending'>
  /** Ends what an agent has scheduled under the link that ended; returns the events for the log of the agent. */
  endSchedules: (act: ActScope, link: { userId: string; personId: string; at: Date }) => Promise<NewEvent[]>
  acts: ActRequests
  /** Throws unless the key of the calling agent has just signed the act. */
  assertSigned: AssertSigned
  signups: Pick<SignupGrants, 'forLink'>
  mailQueue: MailQueue
  /** Returns the address of the page where a person links an agent; undefined if the gateway serves no such page. */
  linkPage: () => string | undefined
}
