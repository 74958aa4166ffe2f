import { type Clock, later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { query } from '#store/query.ts'
import type { Transactions } from './transactions.ts'

type MaintenanceDeps = {
  transactions: Transactions
  clock: Clock
  log: Log
  /** A job runs at most once in this time, over all instances. */
  intervalMs: number
}

const dayMs = 86_400_000
const eventRetentionMs = 7 * dayMs
/** Stored replies without a task; idempotency keys of tasks never expire. */
const replyRetentionMs = 30 * dayMs
const batchMax = 1_000
const retentionName = 'retention'
const auditName = 'ledger audit'
/** A job pauses for this multiple of its last duration. */
const restFactor = 20

/** What the last finished ledger audit found; null where none has finished. */
export type AuditRecord = { disagreements: number; endedAt: Date } | null

export async function readAuditRecord({ pool }: Pick<Transactions, 'pool'>): Promise<AuditRecord> {
  const [row] = await query<{ problems: number; ended_at: Date | null }>(
    pool,
    'select problems, ended_at from maintenance_run where name = $1',
    [auditName],
  )
  return row?.ended_at ? { disagreements: row.problems, endedAt: row.ended_at } : null
}

type Drift = { what: string; id: string; recorded: string; counted: string }

const auditMsMax = 15 * 60_000
const auditLock = 5_065_705

/** Recomputes all balances from the transfers. Undefined while another audit runs. */
const auditLedger = ({ run }: Pick<Transactions, 'run'>): Promise<Drift[] | undefined> =>
  run(async (tx) => {
    const [lock] = await query<{ taken: boolean }>(tx, 'select pg_try_advisory_xact_lock($1) as taken', [
      auditLock,
    ])
    if (!lock?.taken) return undefined
    await query(tx, `set local statement_timeout = ${auditMsMax}`)
    return query<Drift>(tx, auditSql, [], auditMsMax)
  })

const auditSql = `
with side as (select debit as id, -posted as units from transfer where posted > 0
         union all select credit, posted from transfer where posted > 0),
       counted as (select id, sum(units) as units from side group by id),
       pending as (select debit as id, sum(amount) as held from transfer where state = 'pending' group by debit)
     select 'balance' as what, a.id::text, (a.avail + a.held)::text as recorded, coalesce(c.units, 0)::text as counted
       from account a left join counted c using (id) where a.avail + a.held <> coalesce(c.units, 0)
     union all select 'pending holds', a.id::text, a.held::text, coalesce(p.held, 0)::text
       from account a left join pending p using (id) where a.held <> coalesce(p.held, 0)
     union all select 'sum of the asset', asset, '0', sum(avail + held)::text from account group by asset having sum(avail + held) <> 0`

export type Maintenance = {
  deleteExpired(): Promise<void>
  /** May take minutes. */
  auditLedger(): Promise<void>
}

/** Retention and audit: every instance tries, one of them runs each job per interval. */
export function createMaintenance({ transactions, clock, log, intervalMs }: MaintenanceDeps): Maintenance {
  const { pool } = transactions
  const claimRun = async (name: string): Promise<boolean> => {
    const taken = await query(
      pool,
      `insert into maintenance_run as m (name, started_at) values ($1, clock_timestamp())
       on conflict (name) do update set started_at = excluded.started_at
         where m.started_at < clock_timestamp() - greatest(make_interval(secs => $2), m.took_ms * interval '${restFactor} ms')
       returning name`,
      [name, intervalMs / 1_000],
    )
    return taken.length > 0
  }
  /** Deletes in batches, so that no statement runs long. */
  const deleteAll = async (text: string, before: Date): Promise<void> => {
    while ((await query(pool, text, [before])).length === batchMax);
  }
  const deleteExpired = async () => {
    const now = clock.now()
    await deleteAll(
      `delete from user_event where (user_id, seq) in (select user_id, seq from user_event where at < $1 order by at limit ${batchMax})
       returning seq`,
      later(now, -eventRetentionMs),
    )
    await deleteAll(
      `delete from idempotency where (user_id, key) in
         (select user_id, key from idempotency where task_id is null and at < $1 order by at limit ${batchMax}) returning key`,
      later(now, -replyRetentionMs),
    )
  }
  /** Scans the whole ledger, so its duration is recorded and lengthens the pause. */
  const audit = async () => {
    const startedMs = performance.now()
    try {
      const drift = await auditLedger(transactions)
      if (!drift) return
      await query(
        pool,
        'update maintenance_run set problems = $2, ended_at = clock_timestamp() where name = $1',
        [auditName, drift.length],
      )
      if (drift.length > 0)
        log.error({ drift: drift.slice(0, 10) }, 'the ledger disagrees with its transfers')
    } finally {
      // An audit that times out costs as much as one that succeeds.
      const tookMs = Math.ceil(performance.now() - startedMs)
      await query(pool, 'update maintenance_run set took_ms = $2 where name = $1', [auditName, tookMs])
    }
  }
  return {
    async deleteExpired() {
      if (await claimRun(retentionName)) await deleteExpired()
    },
    async auditLedger() {
      if (await claimRun(auditName)) await audit()
    },
  }
}
