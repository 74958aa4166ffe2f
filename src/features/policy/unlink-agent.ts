import { later } from '#kernel/clock.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Owner } from '#store/person-of-user.ts'
import { deletePendingRecipients } from './recipient-store.ts'
import { dayMs, withChanges } from './rules.ts'
import * as store from './store.ts'

export type EndedLink = {
  userId: string
  person: Pick<Owner, 'userId' | 'agentId'>
  linkedAt: Date
  /** Whether limits and kill switch that the person has set through the link are undone when the link ends. */
  isUndone: boolean
  /** The values of the limits that the person has lowered through the link. */
  limitsBefore: store.StoredLimits
}

/**
 * Runs in the transaction that unlinks an agent from its person. Pending raises and recipients are dropped, because the
 * person who decided them is no longer there. With `isUndone`, as for a young link, the limits and the kill switch of
 * the person are undone; otherwise an agent that the person's switch stops stays stopped.
 */
export async function endLink(tx: Tx, link: EndedLink, now: Date): Promise<void> {
  const { userId, isUndone, limitsBefore } = link
  await dropPending(tx, { userId, now, restored: isUndone ? store.readStoredLimits(limitsBefore) : {} })
  await endSwitch(tx, link, now)
}

/** Drops the raises and recipients that wait for their time; what is in effect stays. */
export async function dropPending(
  tx: Tx,
  {
    userId,
    now,
    restored = {},
  }: { userId: string; now: Date; restored?: ReturnType<typeof store.readStoredLimits> },
): Promise<void> {
  await store.lockPolicy(tx, userId, now)
  const stored = await store.policyStateOf(tx, userId, { since: later(now, -dayMs) })
  const { own } = withChanges(stored.own, stored.changes, now)
  await store.savePolicy(tx, userId, { own: { ...own, ...restored }, version: stored.version + 1, now })
  await store.saveChanges(tx, userId, [])
  await deletePendingRecipients(tx, userId, now)
}

async function endSwitch(
  tx: Tx,
  { userId, person, linkedAt, isUndone }: EndedLink,
  now: Date,
): Promise<void> {
  const id = { scope: 'user' as const, userId }
  if (isUndone) {
    const set = await store.switchesOf(tx, id)
    if (set.some(({ set_by: setBy, since }) => setBy === person.agentId && since >= linkedAt))
      await store.clearSwitch(tx, id, { setBy: person.agentId })
    return
  }
  const stopped = await store.switchesOf(tx, { scope: 'user', userId: person.userId })
  if (stopped.length > 0) await store.setSwitch(tx, id, { since: now, setBy: person.agentId })
}
