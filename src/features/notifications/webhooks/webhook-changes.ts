import type { EventLog } from '#durable/events/event-log.ts'
import { urlLengthMax } from '#features/notifications/webhooks-contract.ts'
import type { Clock } from '#kernel/clock.ts'
import type { ActScope, Caller } from '#kernel/contract/caller.ts'
import { conflict, invalid } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { GuardedFetch } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import { type HoldAccess, isVisible } from './webhook-access.ts'
import type { WebhookSecrets } from './webhook-secrets.ts'
import type { Webhook } from './webhook-store.ts'

export type WebhooksDeps = {
  db: Queryable
  clock: Clock
  random: Random
  events: Pick<EventLog, 'bounds' | 'add' | 'notify'>
  http: Pick<GuardedFetch, 'fetch' | 'refusalOf'>
  secrets: WebhookSecrets
  holdAccess: HoldAccess
  publishChange: (userId: string) => void
}

/** Returns the address in its canonical spelling, without a fragment, which is never sent. */
export function parseWebhookUrl(text: string, { http }: WebhooksDeps): string {
  const reason = http.refusalOf(text)
  if (reason !== undefined)
    throw invalid(
      'url',
      'url_not_allowed',
      `Input should be an https address with the default port that is reachable from the internet: ${reason}`,
    )
  const url = new URL(text)
  url.hash = ''
  if (url.href.length > urlLengthMax)
    throw invalid(
      'url',
      'string_too_long',
      `Input should have at most ${urlLengthMax} characters, as it is sent`,
      { max_length: urlLengthMax },
    )
  return url.href
}

export const view = (row: Webhook) => ({
  webhook_id: row.webhook_id,
  url: row.url,
  types: row.types,
  description: row.description,
  status: row.status,
  disabled_reason: row.disabled_reason,
  disabled_at: row.disabled_at?.toISOString() ?? null,
  delivered_through: String(row.seq),
  failed_attempts: row.attempts,
  next_attempt_at: row.retry_at?.toISOString() ?? null,
  client_id: row.client_id,
  created_at: row.created_at.toISOString(),
})

const urlTaken = ({ webhook_id: id }: Webhook) =>
  conflict(
    'A webhook has this address already: `webhooks_update` changes it',
    `webhook ${id} has this address`,
  )

/** Adds the event of a change; this must be the last statement of its transaction. */
export async function addEvent(
  { events, publishChange }: WebhooksDeps,
  { userId }: Caller,
  act: ActScope,
  event: NewEvent,
) {
  await events.add(act.tx, userId, [event])
  act.afterCommit(() => {
    publishChange(userId)
    events.notify(userId)
  })
}

/** Throws if another webhook that the caller sees has the address of `other`. */
export const assertUnused = (
  all: readonly Webhook[],
  caller: Caller,
  other: { url: string; id?: string },
) => {
  const twin = all.find(
    (each) => each.url === other.url && each.webhook_id !== other.id && isVisible(each, caller),
  )
  if (twin) throw urlTaken(twin)
}
