import type { EventLog } from '#durable/events/event-log.ts'
import { type Subject, subjectOf } from '#engines/agent-links/owners.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { confirmedText, type MailKind } from '#engines/person-mails/mail-text.ts'
import type { Clock } from '#kernel/clock.ts'
import { type ActScope, actorOf, type Caller } from '#kernel/contract/caller.ts'
import type { Random } from '#kernel/id.ts'
import type { ActRequests } from '#kernel/task/act-approval-request.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import { fieldNames, type View } from './policy-view.ts'
import type * as rules from './rules.ts'

export type OperationsDeps = {
  db: Queryable
  clock: Clock
  random: Random
  events: Pick<EventLog, 'add' | 'notify'>
  acts: ActRequests
  view: (db: Queryable, userId: string) => Promise<View>
  platformLimits: rules.Limits
  coolingMs: number
  mailQueue: MailQueue
  chainName: (chainId: string) => string
}

export type Changed =
  | { cause: 'tightened' | 'raised' | 'cancelled'; fields: (keyof rules.Limits)[]; effectiveAt?: Date }
  | { cause: 'paused' | 'resumed' }

type ChangeResult<T> = {
  answer: T
  changed: readonly Changed[]
  mail?: { kind: MailKind; text: string; effectiveAt?: Date } | undefined
}

const changedEvent = (userId: string, by: string, changed: Changed) => ({
  type: 'policy.changed',
  subject: { kind: 'policy', id: userId },
  data: {
    cause: changed.cause,
    fields: 'fields' in changed ? changed.fields.map((field) => fieldNames[field]) : [],
    effective_at: ('effectiveAt' in changed && changed.effectiveAt?.toISOString()) || null,
    by,
  },
})

export type ActOf<T> = (tx: Tx, now: Date, subject: Subject) => Promise<ChangeResult<T>>

/** Runs an act for one user, the caller or a linked agent, and publishes what it changed. */
export async function change<T>(
  { clock, events, mailQueue }: OperationsDeps,
  { caller, forAgent }: { caller: Caller; forAgent: string | undefined },
  { tx, afterCommit }: ActScope,
  run: ActOf<T>,
): Promise<T> {
  const subject = await subjectOf(tx, caller, forAgent, { lock: true })
  const { answer, changed, mail } = await run(tx, clock.now(), subject)
  const { userId } = subject
  await events.add(
    tx,
    userId,
    changed.map((each) => changedEvent(userId, actorOf(caller), each)),
  )
  // The mail reports to the person what was loosened. A caller without sign-in has no person, so no mail is sent.
  if (mail && caller.person)
    await mailQueue.add(tx, caller.userId, mail.kind, { ...mail, text: mail.text + confirmedText(caller) })
  if (changed.length > 0) afterCommit(() => events.notify(userId))
  if (mail) afterCommit(mailQueue.wake)
  return answer
}
