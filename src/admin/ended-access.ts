import { appendEvents } from '#durable/events/append-events.ts'
import { accessTopic, revokedTopic, userTopic, webhooksTopic } from '#durable/events/notifier.ts'
import { endWebhooks } from '#features/notifications/webhooks/webhooks-of-apps.ts'
import type { EndApps } from '#features/oauth/grant-revocation.ts'
import { endSchedules } from '#features/schedules/access-end.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import type { Session } from './session.ts'

/**
 * Ends webhooks and schedules, which a thief may have made, with the tokens. The caller notifies after the commit.
 */
export const endWebhooksOfApps =
  ({ clock }: Pick<Session, 'clock'>): EndApps =>
  async (tx, { personId, clientId }) => {
    const add = (to: Tx, userId: string, events: readonly NewEvent[]) =>
      appendEvents(to, userId, events, clock.now())
    const reason = clientId === undefined ? 'revoked' : 'disconnected'
    const paused = await endSchedules(tx, { userId: personId, clientId, at: clock.now() })
    await endWebhooks({ add }, tx, { userId: personId, clientId, reason })
    await add(tx, personId, paused)
    return () => {}
  }

export const accessTopics = (userId: string, hashes: readonly string[]): string[] => [
  ...hashes.map(revokedTopic),
  accessTopic(userId),
]
export const webhookTopics = (userId: string): string[] => [webhooksTopic(userId), userTopic(userId)]
