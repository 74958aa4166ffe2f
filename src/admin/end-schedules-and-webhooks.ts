import { appendEvents } from '#durable/events/append-events.ts'
import { accessTopic, revokedTopic, userTopic, webhooksTopic } from '#durable/events/notifier.ts'
import { endWebhooks } from '#features/notifications/webhooks/webhooks-of-apps.ts'
import type { EndApps } from '#features/oauth/grant-revocation.ts'
import { type EndedAccess, endSchedules } from '#features/schedules/access-end.ts'
import { systemRandom } from '#kernel/id.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { Session } from './session.ts'

type Ended = Omit<EndedAccess, 'cancelTasks' | 'random'>

/** Pauses schedules and cancels their runs; an instance notices the end of a run at its next poll. */
export const pauseSchedules = (tx: Tx, ended: Ended): Promise<NewEvent[]> =>
  endSchedules(tx, {
    ...ended,
    random: systemRandom,
    // Tasks are locked in the order of their ids, as in a commit of steps.
    cancelTasks: (taskIds) =>
      query(
        tx,
        `select c.id from (select id from unnest($1::uuid[]) id order by id) t, lateral task_cancel(t.id, $2, $3) c`,
        [taskIds, ended.userId, ended.at],
      ),
  })

/**
 * Pauses the schedules of a suspended user and cancels their runs; the caller notifies the instances after the commit.
 */
export async function endRuns(tx: Tx, ended: Ended): Promise<void> {
  await appendEvents(tx, ended.userId, await pauseSchedules(tx, ended), ended.at)
}

/**
 * Ends webhooks and schedules together with the tokens of apps, because a thief of a token may have made them. The
 * caller notifies the instances after the commit.
 */
export const endWebhooksOfApps =
  ({ clock }: Pick<Session, 'clock'>): EndApps =>
  async (tx, { personId, clientId }) => {
    const add = (to: Tx, userId: string, events: readonly NewEvent[]) =>
      appendEvents(to, userId, events, clock.now())
    const reason = clientId === undefined ? 'revoked' : 'disconnected'
    const paused = await pauseSchedules(tx, { userId: personId, clientId, at: clock.now() })
    await endWebhooks({ add }, tx, { userId: personId, clientId, reason })
    await add(tx, personId, paused)
    return () => {}
  }

export const accessTopics = (userId: string, hashes: readonly string[]): string[] => [
  ...hashes.map(revokedTopic),
  accessTopic(userId),
]
export const webhookTopics = (userId: string): string[] => [webhooksTopic(userId), userTopic(userId)]
