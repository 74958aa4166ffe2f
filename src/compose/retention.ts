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
import type { Composed } from './compose.ts'

const optionalMs = (days: number | undefined): number | undefined => days && days * dayMs

const retentionOf = (config: Config) => ({
  eventsMs: config.EVENT_RETENTION_DAYS * dayMs,
  repliesMs: config.REPLY_RETENTION_DAYS * dayMs,
  tasksMs: optionalMs(config.TASK_RETENTION_DAYS),
  moneyTasksMs: optionalMs(config.MONEY_TASK_RETENTION_DAYS),
})

/** The retention of each table, for the gauges. The oldest row of a table of tasks is that of a task with money. */
export function tableRetention(config: Config): Record<string, number> {
  const { eventsMs, repliesMs, moneyTasksMs } = retentionOf(config)
  return { user_event: eventsMs, idempotency: repliesMs, ...(moneyTasksMs && { task: moneyTasksMs }) }
}

/** Everything that is deleted by age, and the jobs of the sections. */
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
