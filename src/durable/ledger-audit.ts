import type { Log } from '#kernel/log.ts'
import { query } from '#store/query.ts'
import type { MaintenanceJob } from './maintenance.ts'
import type { Transactions } from './transactions.ts'

const name = 'ledger audit'

/** What the audits have found and not found corrected since; null where none has finished. */
export type AuditRecord = { disagreements: number; endedAt: Date } | null

export async function readAuditRecord({ pool }: Pick<Transactions, 'pool'>): Promise<AuditRecord> {
  const [row] = await query<{ problems: number; ended_at: Date | null }>(
    pool,
    `select (select count(*)::integer from ledger_discrepancy) as problems, ended_at from maintenance_run where name = $1`,
    [name],
  )
  return row?.ended_at ? { disagreements: row.problems, endedAt: row.ended_at } : null
}

type Discrepancy = { what: string; subject: string; recorded: string; counted: string }

const auditSql = `
with side as (select debit as id, -posted as units from transfer where posted > 0
    union all select credit, posted from transfer where posted > 0),
  counted as (select id, sum(units) as units from side group by id),
  pending as (select debit as id, sum(amount) as held from transfer where state = 'pending' group by debit),
  found as (
    select 'balance' as what, a.id::text as subject, a.avail + a.held as recorded, coalesce(c.units, 0) as counted
      from account a left join counted c using (id) where a.avail + a.held <> coalesce(c.units, 0)
    union all select 'pending holds', a.id::text, a.held, coalesce(p.held, 0)
      from account a left join pending p using (id) where a.held <> coalesce(p.held, 0)
    union all select 'sum of the asset', asset, sum(avail + held), 0
      from account group by asset having sum(avail + held) <> 0),
  gone as (delete from ledger_discrepancy d where not exists
    (select 1 from found where found.what = d.what and found.subject = d.subject))
insert into ledger_discrepancy as d (what, subject, recorded, counted, found_at)
  select *, clock_timestamp() from found
  on conflict (what, subject) do update set recorded = excluded.recorded, counted = excluded.counted
  returning what, subject, recorded::text, counted::text`

/** Counts the balances again from the transfers. */
export const ledgerAudit = ({ pool, log }: Pick<Transactions, 'pool'> & { log: Log }): MaintenanceJob => ({
  name,
  async runBatch() {
    const found = await query<Discrepancy>(pool, auditSql)
    if (found.length > 0)
      log.error({ discrepancies: found.slice(0, 10) }, 'the ledger disagrees with its transfers')
    return false
  },
})
