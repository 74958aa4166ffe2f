import type { Config } from '#config.ts'
import { recentRequestDeletion } from '#durable/accept/duplicate-requests.ts'
import { mailboxDeletion } from '#durable/events/stream-mailboxes.ts'
import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import {
  dayMs,
  deletionJobs,
  logDeletions,
  marketLeaseDeletion,
  witnessDeletion,
} from '#durable/upkeep/retention.ts'
import { taskRetentionJobs } from '#durable/upkeep/task-retention.ts'
import type { Composed } from './compose.ts'

const optionalMs = (days: number | undefined): number | undefined => days && days * dayMs

const retentionOf = (config: Config) => ({
  eventsMs: config.EVENT_RETENTION_DAYS * dayMs,
  repliesMs: config.REPLY_RETENTION_DAYS * dayMs,
  tasksMs: optionalMs(config.TASK_RETENTION_DAYS),
  moneyTasksMs: optionalMs(config.MONEY_TASK_RETENTION_DAYS),
})

/**
 * Returns how long each table keeps its rows, for the gauges. The age of the table of tasks is that of tasks that moved
 * money, which are kept longest.
 */
export function tableRetention(config: Config): Record<string, number> {
  const { eventsMs, repliesMs, moneyTasksMs } = retentionOf(config)
  return { user_event: eventsMs, idempotency: repliesMs, ...(moneyTasksMs && { task: moneyTasksMs }) }
}

/** Returns the jobs that delete rows by age, and the jobs of the sections. */
export function retentionJobs({
  config,
  db: pool,
  clock,
  joined,
}: Pick<Composed, 'config' | 'db' | 'clock' | 'joined'>): MaintenanceJob[] {
  const retention = retentionOf(config)
  return [
    ...deletionJobs({ pool, clock }, [
      ...logDeletions(retention),
      recentRequestDeletion,
      mailboxDeletion,
      marketLeaseDeletion,
      witnessDeletion,
      ...joined.deletions,
    ]),
    ...taskRetentionJobs({ pool, clock, retention, taskTables: ['approval', ...joined.taskTables] }),
    ...joined.jobs,
  ]
}
