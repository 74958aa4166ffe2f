import type { EventLog } from '#durable/events/event-log.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Approval } from './approval-store.ts'

/** The events of an approval, in the log of the user and in that of the person who decides. */

export type Approvers = {
  personOf(db: Queryable, userId: string): Promise<string | undefined>
  /** Returns the caller as whom a confirmed act runs: the person, or the user itself where people cannot sign in. */
  callerFor(db: Queryable, userId: string): Promise<Caller>
  /** Whether people cannot sign in to this gateway, so that a request need not belong to a person. */
  hasNoPeople: boolean
  page(approvalId: string): string | undefined
}

export const approvalEvent = (
  type: 'approval.requested' | 'approval.decided' | 'approval.expired' | 'approval.cancelled',
  { approval_id, task_id, intent, intent_sha256, expires_at, decision, decided_by }: Approval,
): NewEvent => ({
  type,
  taskId: task_id,
  subject: { kind: 'approval', id: approval_id },
  data: {
    approval_id,
    task_id,
    intent,
    intent_sha256,
    expires_at: expires_at.toISOString(),
    decision,
    by: decided_by,
  },
})

/** Returns the users whose logs get an approval's events, in the order in which every transaction locks logs. */
export async function readersOf({ personOf }: Approvers, db: Queryable, userId: string): Promise<string[]> {
  const person = await personOf(db, userId)
  return person === undefined || person === userId ? [userId] : [userId, person].sort()
}

export async function addEvent(
  { events }: { events: Pick<EventLog, 'add'> },
  approvers: Approvers,
  tx: Tx,
  event: { userId: string; event: NewEvent },
): Promise<string[]> {
  const readers = await readersOf(approvers, tx as Queryable, event.userId)
  for (const reader of readers) await events.add(tx, reader, [event.event])
  return readers
}
