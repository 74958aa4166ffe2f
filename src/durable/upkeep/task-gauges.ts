import { readAuditRecord } from '#durable/ledger/audit.ts'
import type { RunnerCounts } from '#durable/run/runner.ts'
import type { Transactions } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import { gauge, type Metric } from '#kernel/metrics.ts'
import { query } from '#store/query.ts'
import { readQueueStats } from './queue-stats.ts'

/**
 * The queue has the tasks that have not ended, so that no ended task is read. The lateral join keeps the planner
 * from scanning all tasks, which it would estimate as cheaper.
 */
const waitingSql = `
  select state, count(*)::integer as count, min(created_at) as oldest
  from task_queue cross join lateral (select state, created_at from task where id = task_id limit 1) open
  where state in ('review', 'reconciling', 'awaiting_approval') group by state`

type Reading = Pick<Transactions, 'pool'>

export async function readTaskGauges(
  { pool }: Reading,
  clock: Clock,
  { running, slots }: RunnerCounts,
): Promise<Metric[]> {
  const [{ queueDepth, oldestPendingSeconds }, waiting] = await Promise.all([
    readQueueStats({ pool }, clock),
    query<{ state: string; count: number; oldest: Date }>(pool, waitingSql, []),
  ])
  const stateOf = (name: string) => waiting.find(({ state }) => state === name)
  const inState = (name: string) => stateOf(name)?.count ?? 0
  const asked = stateOf('awaiting_approval')?.oldest
  return [
    gauge('portico_tasks_due', 'Tasks that are due and that no instance has claimed', queueDepth),
    gauge(
      'portico_tasks_oldest_due_age_seconds',
      'Time since the oldest of the due tasks was due',
      oldestPendingSeconds ?? 0,
    ),
    gauge('portico_tasks_in_review', 'Tasks that an operator has to look at', inState('review')),
    gauge('portico_tasks_reconciling', 'Tasks whose outcome is being looked up', inState('reconciling')),
    gauge(
      'portico_approvals_waiting',
      'Requests that wait for a person, or the operator',
      inState('awaiting_approval'),
    ),
    gauge(
      'portico_approvals_oldest_age_seconds',
      'Time since the oldest of the waiting requests was made',
      asked ? Math.max(0, (clock.now().getTime() - asked.getTime()) / 1_000) : 0,
    ),
    gauge('portico_tasks_running', 'Tasks that this instance runs now', running),
    gauge('portico_task_slots', 'Tasks that this instance runs at most at a time', slots),
  ]
}

/** Returns the gauges of the last ledger audit, whichever instance ran it; none if no audit has finished. */
export async function readLedgerGauges(reading: Reading): Promise<Metric[]> {
  const record = await readAuditRecord(reading)
  if (!record) return []
  return [
    gauge(
      'portico_ledger_disagreements',
      'Balances that disagree with the transfers, by the audit',
      record.disagreements,
    ),
    gauge(
      'portico_ledger_audit_timestamp_seconds',
      'When the last audit of the ledger ended',
      record.endedAt.getTime() / 1_000,
    ),
  ]
}
