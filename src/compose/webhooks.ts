import type { StoredEvent } from '#durable/events/event-log.ts'
import {
  gapTopic,
  userOfAccessTopic,
  userOfTopic,
  userOfWebhooksTopic,
  webhooksTopic,
} from '#durable/events/notifier.ts'
import { endFileLinks } from '#engines/files/files.ts'
import type { Auth } from '#features/auth/auth.ts'
import { createNotifications, notificationFacts } from '#features/notifications/notifications.ts'
import { deliverClaimed } from '#features/notifications/webhooks/delivery-run.ts'
import { createDispatcher } from '#features/notifications/webhooks/dispatcher.ts'
import { createWebhookMetrics } from '#features/notifications/webhooks/metrics.ts'
import { webhookDeletions } from '#features/notifications/webhooks/retention.ts'
import { createWebhookSecrets } from '#features/notifications/webhooks/webhook-secrets.ts'
import { createWebhooks } from '#features/notifications/webhooks/webhooks.ts'
import { endWebhooks, postedOrigins } from '#features/notifications/webhooks/webhooks-of-apps.ts'
import type { EndApps } from '#features/oauth/grant-revocation.ts'
import { endSchedules } from '#features/schedules/access-end.ts'
import { createSealer } from '#kernel/wire/sealed-secret.ts'
import type { ShowEvent } from './section.ts'
import type { Parts } from './section-parts.ts'

export type WebhookOverrides = {
  /** The interval of the poll for retries, and for deliveries whose notification was lost. */
  webhookPollMs?: number
  /** How many cursors of webhooks one poll reads. */
  webhookSliceMax?: number
}

const pollMsDefault = 10_000

type WebhookParts = Pick<Parts, 'core' | 'custody' | 'webhookHttp'> & { auth: Pick<Auth, 'holdAccess'> }

/**
 * Ends what an app has added or activated, and the addresses of files, when the access of the app ends. Without an
 * app everything ends: the person's password is new, or every access was ended.
 */
export function openWebhooksOfApps({ core, scheduleClock }: Pick<Parts, 'core' | 'scheduleClock'>) {
  const { db, clock, random, taskEngine } = core
  const { events, notifier, tasks } = taskEngine
  const endApps: EndApps = async (tx, { personId: userId, clientId }) => {
    const reason = clientId === undefined ? 'revoked' : 'disconnected'
    await endFileLinks(tx, userId, clock.now())
    const announcements: (() => void)[] = []
    const act = { tx, afterCommit: (announce: () => void) => void announcements.push(announce) }
    const cancelTasks = (taskIds: readonly string[]) => tasks.cancelNotSent(userId, taskIds, act)
    const times = { at: clock.now(), slotsAt: scheduleClock.now() }
    const paused = await endSchedules(tx, { userId, clientId, ...times, random, cancelTasks })
    const hasEnded = await endWebhooks(events, tx, { userId, clientId, reason })
    await events.add(tx, userId, paused)
    return () => {
      for (const announce of announcements) announce()
      if (hasEnded) notifier.broadcast([webhooksTopic(userId)])
      if (hasEnded || paused.length > 0) events.notify(userId)
    }
  }
  return { endApps, postedOrigins: (userId: string) => postedOrigins(db, userId) }
}

export function openWebhooks(
  { core, custody, auth, webhookHttp: http }: WebhookParts,
  overrides: WebhookOverrides,
) {
  const { config, db, clock, random, log, taskEngine } = core
  const { notifier, events, transact, instanceId, isOnDuty, isLeaseHeld } = taskEngine
  const { keyEncryptionKeys } = custody
  const sealer = createSealer({ keyEncryptionKeys, random })
  const secrets = createWebhookSecrets({ db, sealer, keyEncryptionKeys, clock, random, log })
  const metrics = createWebhookMetrics()
  const { onAttempt, onDisabled } = metrics
  let show: ShowEvent = (event) => event
  const run = {
    show: (event: StoredEvent) => show(event),
    db,
    transact,
    events,
    secrets,
    http,
    clock,
    random,
    log,
    onAttempt,
    onDisabled,
  }
  const dispatcher = createDispatcher({
    db,
    clock,
    log,
    instanceId,
    isOnDuty,
    isLeaseHeld,
    deliver: (claim, stop) => deliverClaimed(run, claim, stop),
    pollMs: overrides.webhookPollMs ?? pollMsDefault,
    sliceMax: overrides.webhookSliceMax,
  })
  notifier.onAny((topic) => {
    if (topic === gapTopic) return dispatcher.forget()
    const user = userOfTopic(topic)
    if (user !== undefined) return dispatcher.onEvents(user)
    // A suspension of the user may have been lifted, so deliveries that waited are due now.
    const changed = userOfWebhooksTopic(topic) ?? userOfAccessTopic(topic)
    if (changed !== undefined) dispatcher.onWebhooks(changed)
  })
  const publishChange = (userId: string) => notifier.broadcast([webhooksTopic(userId)])
  /** `addLinks` adds to an event the links that HTTP clients get with the event. */
  const start = (addLinks: ShowEvent) => {
    show = addLinks
    return dispatcher.start()
  }
  return {
    part: 'notifications' as const,
    facts: notificationFacts(config.EVENT_RETENTION_DAYS),
    operations: [
      ...createNotifications({ events }),
      ...createWebhooks({
        db,
        clock,
        random,
        events,
        http,
        secrets,
        holdAccess: auth.holdAccess,
        publishChange,
      }),
    ],
    running: dispatcher.running,
    start,
    starters: [start],
    keyJobs: { rewrapOfWebhooks: secrets.rewrap },
    deletions: webhookDeletions,
    metrics: { webhooks: async () => metrics.read(dispatcher) },
  }
}
