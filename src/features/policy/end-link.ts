import type { Owner } from '#engines/agent-links/owners.ts'
import { later } from '#kernel/clock.ts'
import type { Tx } from '#kernel/task.ts'
import { deletePendingRecipients } from './recipient-store.ts'
import { dayMs, withChanges } from './rules.ts'
import * as store from './store.ts'

export type EndedLink = { userId: string; person: Pick<Owner, 'userId' | 'agentId'> }

/**
 * In the transaction that unlinks an agent from its person: what waits for its time is dropped, since nobody is left who
 * decided it, and an agent that the person has stopped stays stopped.
 */
export async function endLink(tx: Tx, { userId, person }: EndedLink, now: Date): Promise<void> {
  await store.lockPolicy(tx, userId, now)
  const stored = await store.policyStateOf(tx, userId, { since: later(now, -dayMs) })
  const { own } = withChanges(stored.own, stored.changes, now)
  await store.savePolicy(tx, userId, { own, version: stored.version + 1, now })
  await store.saveChanges(tx, userId, [])
  await deletePendingRecipients(tx, userId, now)
  const stopped = await store.switchOf(tx, { scope: 'user', userId: person.userId })
  if (stopped) await store.setSwitch(tx, { scope: 'user', userId }, { since: now, setBy: person.agentId })
}
