import { Fault } from '#kernel/fault.ts'
import type { Log } from '#kernel/log.ts'

/** Whether each commit is on a second server before it is acknowledged, where the installation demands it. */

export type ReplicationRow = {
  /** Live synchronous standbys; null where none is demanded. */
  standbys: number | null
  synchronousCommit: string | null
}
export type Replication = {
  /** Null where no standby is demanded, or before the first reading. */
  isReplicated(): boolean | null
  observe(row: ReplicationRow): void
  /** Throws for new money once no standby was there for half a minute; what returns money goes on. */
  assertForNewMoney(): void
}

export type Durability = 'standby' | 'storage' | 'single'

const graceMs = 30_000

/** Columns of a `ReplicationRow`. A role without pg_read_all_stats sees no state: it counts as no standby. */
export const replicationColumns = (durability: Durability): string =>
  durability === 'standby'
    ? `(select count(*)::integer from pg_stat_replication where sync_state in ('sync', 'quorum') and state = 'streaming')
        as standbys, current_setting('synchronous_commit') as "synchronousCommit"`
    : `null::integer as standbys, null::text as "synchronousCommit"`

export function createReplication({ log, nowMs }: { log: Log; nowMs: () => number }): Replication {
  let isReplicated: boolean | null = null
  let lostAtMs: number | undefined
  return {
    isReplicated: () => isReplicated,
    observe({ standbys, synchronousCommit }) {
      if (standbys === null) return
      const was = isReplicated
      isReplicated = standbys > 0 && ['on', 'remote_apply'].includes(synchronousCommit ?? '')
      if (isReplicated) lostAtMs = undefined
      else lostAtMs ??= nowMs()
      if (was !== false && !isReplicated)
        log.error({ standbys, synchronousCommit }, 'the database has no live synchronous standby')
      if (was === false && isReplicated)
        log.warn({ standbys }, 'the database has a synchronous standby again')
    },
    assertForNewMoney() {
      if (lostAtMs === undefined || nowMs() - lostAtMs < graceMs) return
      throw new Fault(
        'unavailable',
        'The database has no standby at present: only what returns money is accepted, and nothing was sent',
        { extras: { reason: 'not_replicated', retry_after: 10 } },
      )
    },
  }
}
