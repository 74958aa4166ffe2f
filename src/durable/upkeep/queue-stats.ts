import type { Transactions } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import { query } from '#store/query.ts'

export type QueueStats = { queueDepth: number; oldestPendingSeconds: number | null }

/** The longest queue that is counted: a longer one shows nothing more, and would load a database that is behind. */
const depthMax = 100_000

export async function readQueueStats(
  { pool }: Pick<Transactions, 'pool'>,
  clock: Clock,
): Promise<QueueStats> {
  const [row] = await query<{ depth: number; oldest: Date | null }>(
    pool,
    `select count(*)::integer as depth, min(run_at) as oldest from
       (select run_at from task_queue where owner is null and run_at <= $1 order by priority, run_at limit ${depthMax}) due`,
    [clock.now()],
  )
  const oldest = row?.oldest ?? null
  return {
    queueDepth: row?.depth ?? 0,
    oldestPendingSeconds:
      oldest && Math.max(0, Math.floor((clock.now().getTime() - oldest.getTime()) / 1000)),
  }
}
