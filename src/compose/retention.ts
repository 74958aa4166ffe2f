import type { Config } from '#config.ts'
import { recentRequestDeletion } from '#durable/accept/recent-request.ts'
import { mailboxDeletion } from '#durable/events/mailboxes.ts'
import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import {
  dayMs,
  deletionJobs,
  logDeletions,
  marketLeaseDeletion,
  witnessDeletion,
} from '#durable/upkeep/retention.ts'
import { taskRetentionJobs } from '#durable/upkeep/task-retention.ts'
import { gasDeletions } from '#engines/evm-batch/retention.ts'
import { fileDeletions } from '#engines/files/retention.ts'
import { mailDeletion } from '#engines/person-mails/retention.ts'
import { orderDeletion } from '#engines/trigger-orders/retention.ts'
import { venueRetentionJob } from '#engines/venue/records/retention.ts'
import { agentDeletions } from '#features/agents/retention.ts'
import { chatRetentionJob } from '#features/chat/retention.ts'
import { imageDeletions } from '#features/image/retention.ts'
import { webhookDeletions } from '#features/notifications/webhooks/retention.ts'
import { oauthDeletions } from '#features/oauth/retention.ts'
import { policyDeletions } from '#features/policy/retention.ts'
import { swapDeletions } from '#features/swap/retention.ts'
import type { Core } from './core.ts'

const optionalMs = (days: number | undefined): number | undefined => days && days * dayMs

const retentionOf = (config: Config) => ({
  eventsMs: config.EVENT_RETENTION_DAYS * dayMs,
  repliesMs: config.REPLY_RETENTION_DAYS * dayMs,
  filesMs: config.FILE_RETENTION_DAYS * dayMs,
  ordersMs: config.ORDER_RETENTION_DAYS * dayMs,
  tasksMs: optionalMs(config.TASK_RETENTION_DAYS),
  moneyTasksMs: optionalMs(config.MONEY_TASK_RETENTION_DAYS),
  venueRecordsMs: optionalMs(config.VENUE_RECORD_RETENTION_DAYS),
})

/** By table, for the gauges. Tasks without money alone do not let the oldest row become younger. */
export function tableRetention(config: Config): Record<string, number> {
  const { eventsMs, repliesMs, moneyTasksMs } = retentionOf(config)
  return { user_event: eventsMs, idempotency: repliesMs, ...(moneyTasksMs && { task: moneyTasksMs }) }
}

/** Everything that is deleted by age. */
export function retentionJobs({
  config,
  db: pool,
  clock,
}: Pick<Core, 'config' | 'db' | 'clock'>): MaintenanceJob[] {
  const retention = retentionOf(config)
  const { venueRecordsMs, ordersMs, filesMs, repliesMs } = retention
  return [
    ...deletionJobs({ pool, clock }, [
      ...logDeletions(retention),
      recentRequestDeletion,
      mailboxDeletion,
      marketLeaseDeletion,
      witnessDeletion,
      orderDeletion(ordersMs),
      ...policyDeletions,
      ...gasDeletions,
      ...swapDeletions,
      ...oauthDeletions,
      ...agentDeletions,
      mailDeletion,
      ...webhookDeletions,
      ...fileDeletions(filesMs),
      ...imageDeletions(repliesMs),
    ]),
    ...taskRetentionJobs({
      pool,
      clock,
      retention,
      taskTables: ['policy_spend', 'policy_chat_spend', 'sponsor_charge', 'approval'],
    }),
    chatRetentionJob(pool, clock),
    ...(venueRecordsMs ? [venueRetentionJob(pool, clock, venueRecordsMs)] : []),
  ]
}
