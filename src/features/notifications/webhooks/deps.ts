import type { EventLog } from '#durable/events/event-log.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Queryable } from '#store/query.ts'
import type { GuardedFetch } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import type { HoldAccess } from './webhook-access.ts'
import type { WebhookSecrets } from './webhook-secrets.ts'

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
