import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Transactions } from '#durable/transactions.ts'
import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import type { Log } from '#kernel/log.ts'
import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'

/**
 * Recounts the balances from the transfers. Each transfer is counted once, in the order of `settled_seq`, and
 * the counted sums are stored by account. No statement reads more than one batch of the history.
 */

const name = 'ledger audit'

/** The number of discrepancies that audits found and that are not corrected yet; null if no audit has finished. */
export type AuditRecord = { disagreements: number; endedAt: Date } | null

export async function readAuditRecord({ pool }: Pick<Transactions, 'pool'>): Promise<AuditRecord> {
  const [row] = await query<{ problems: number; ended_at: Date | null }>(
    pool,
    `select (select count(*)::integer from ledger_discrepancy) as problems, ended_at from maintenance_run where name = $1`,
    [name],
  )
  return row?.ended_at ? { disagreements: row.problems, endedAt: row.ended_at } : null
}

type AuditLimits = {
  accountsMax: number
  /** The most slices of accounts and ranges of transfers that one run compares; the next run continues from there. */
  slicesMax: number
  rangesMax: number
  /** How long a run waits for open transactions that have taken a number of the transfer sequence. */
  writersMsMax: number
}
type AuditDeps = Pick<Transactions, 'pool' | 'run'> & { log: Log; limits: AuditLimits }

const limitsDefault: AuditLimits = { accountsMax: 1_000, slicesMax: 20, rangesMax: 8, writersMsMax: 5_000 }
/**
 * Transfers are counted and read again in ranges of this many sequence numbers. Each range has a row of `ledger_block`,
 * with the digest of its transfers.
 */
const rangeSize = 4_096n
const seqMax = 9_223_372_036_854_775_807n
/** The most changed accounts that a run compares; the others wait for the comparison of all accounts. */
const changedMax = 10_000

type Position = { counted_seq: bigint; compared_account: bigint; read_block: bigint }

/** Locks the stored position of the audit, so that no other run of the audit moves it before the commit. */
const lockPosition = async (tx: Tx): Promise<Position> =>
  (await query<Position>(tx, 'select * from ledger_audit for update'))[0]!

const writersSql = `select virtualtransaction as id from pg_locks
  where locktype = 'relation' and relation = 'transfer_settled_seq'::regclass and mode = 'RowExclusiveLock' and granted
    and database = (select oid from pg_database where datname = current_database())`

/**
 * Returns a number up to which every transfer is committed or never will be: the transactions that had taken a
 * number before it was read have ended. Returns undefined if one of them takes too long. It depends neither on a
 * clock nor on other databases of the server.
 */
async function readSettled(pool: pg.Pool, writersMsMax: number): Promise<bigint | undefined> {
  const [last] = await query<{ seq: bigint }>(
    pool,
    'select case when is_called then last_value else 0 end as seq from transfer_settled_seq',
  )
  const writers = async () => (await query<{ id: string }>(pool, writersSql)).map(({ id }) => id)
  const untilMs = performance.now() + writersMsMax
  for (let left = new Set(await writers()); left.size > 0; ) {
    if (performance.now() > untilMs) return undefined
    await delay(20)
    left = left.intersection(new Set(await writers()))
  }
  return last!.seq
}

const noteSql = `insert into ledger_discrepancy as d (what, subject, recorded, counted, found_at)
    select what, subject, recorded, counted, clock_timestamp() from found
    on conflict (what, subject) do update set recorded = excluded.recorded, counted = excluded.counted`

const countSql = `
with batch as materialized (
    select t.*, transfer_digest(t) as digest from transfer t where settled_seq > $1 and settled_seq <= $2),
  change as materialized (select id, sum(units) as units from (
    select debit as id, -posted as units from batch union all select credit, posted from batch) side group by id),
  counted as (insert into ledger_checkpoint as c (account_id, units) select id, units from change
    on conflict (account_id) do update set units = c.units + excluded.units),
  ranges as (insert into ledger_block as b (number, transfers, digest)
    select (settled_seq - 1) / ${rangeSize}, count(*), sum(digest) from batch group by 1
    on conflict (number) do update set transfers = b.transfers + excluded.transfers, digest = b.digest + excluded.digest),
  summed as (insert into ledger_audit_sum as s (asset, units)
    select a.asset, sum(change.units) from change join account a using (id) where a.id <= $3 group by a.asset
    on conflict (asset) do update set units = s.units + excluded.units),
  found as (select 'assets of the transfer' as what, batch.id::text as subject, d.asset as recorded, c.asset as counted
    from batch join account d on d.id = debit join account c on c.id = credit where d.asset <> c.asset),
  noted as (${noteSql}),
  moved as (update ledger_audit set counted_seq = $2)
select id from change`

/**
 * Counts the transfers that follow the last counted one, up to the end of their range or to `goal`. Returns the accounts
 * of these transfers, or undefined once `goal` is reached.
 */
const countRange = ({ run }: AuditDeps, goal: bigint): Promise<bigint[] | undefined> =>
  run(async (tx) => {
    const { counted_seq, compared_account } = await lockPosition(tx)
    if (counted_seq >= goal) return undefined
    const rangeEnd = (counted_seq / rangeSize + 1n) * rangeSize
    const to = rangeEnd < goal ? rangeEnd : goal
    const changed = await query<{ id: bigint }>(tx, countSql, [counted_seq, to, compared_account])
    return changed.map(({ id }) => id)
  })

/** All sums come from one snapshot, so a commit in flight is in none of them or in all. */
const compareSql = (chosen: string, then: string) => `
with chosen as materialized (select id, asset, avail, held from account where ${chosen}),
  since as (select id, sum(units) as units from (
      select debit as id, -posted as units from transfer where settled_seq > $1 and settled_seq <= $2
      union all select credit, posted from transfer where settled_seq > $1 and settled_seq <= $2) side group by id),
  pending as (select debit as id, sum(amount) as units from transfer
    where settled_seq is null and debit = any(array(select id from chosen)) group by debit),
  counted as materialized (
    select id, avail + held as total, coalesce(c.units, 0) + coalesce(since.units, 0) as units,
        held, coalesce(pending.units, 0) as pending
      from chosen left join ledger_checkpoint c on c.account_id = id left join since using (id) left join pending using (id)),
  found as (
    select 'balance' as what, id::text as subject, total::text as recorded, units::text as counted
      from counted where total <> units
    union all select 'pending holds', id::text, held::text, pending::text from counted where held <> pending),
  corrected as (delete from ledger_discrepancy d using counted c
    where d.subject = c.id::text and d.what in ('balance', 'pending holds')
      and not exists (select from found where (found.what, found.subject) = (d.what, d.subject))),
  noted as (${noteSql})
${then}`

/** Compares the balances of accounts that have changed, and of accounts that disagreed before. */
const compareChangedSql = compareSql(
  `id = any($3::bigint[] || array(
    select subject::bigint from ledger_discrepancy where what in ('balance', 'pending holds') limit 1000))`,
  'select 1 as compared',
)

const compareChanged = ({ run }: AuditDeps, accounts: bigint[]): Promise<void> =>
  run(async (tx) => {
    const { counted_seq } = await lockPosition(tx)
    await query(tx, compareChangedSql, [counted_seq, seqMax, accounts])
  })

const compareSliceSql = compareSql(
  'id > $3 order by id limit $4',
  `, summed as (insert into ledger_audit_sum as s (asset, units)
    select asset, sum(units) from chosen join ledger_checkpoint c on c.account_id = id group by asset
    on conflict (asset) do update set units = s.units + excluded.units),
  moved as (update ledger_audit set compared_account = (select max(id) from chosen) where exists (select from chosen))
select count(*)::integer as compared from chosen`,
)

/**
 * The sum of an asset adds up the counted units of each account as of its comparison in this cycle. If a later range
 * counts transfers of an account that was already compared, their units are added to the sum.
 */
const endCycleSql = `
with found as (select 'sum of the asset' as what, asset as subject, units::text as recorded, '0' as counted
    from ledger_audit_sum where units <> 0),
  corrected as (delete from ledger_discrepancy d where what = 'sum of the asset'
    and not exists (select from found where found.subject = d.subject)),
  noted as (${noteSql}),
  cleared as (delete from ledger_audit_sum)
update ledger_audit set compared_account = 0`

/** Compares the next accounts by id. Returns false at the end of the cycle, which compares the sums of the assets. */
const compareSlice = ({ run, limits }: AuditDeps): Promise<boolean> =>
  run(async (tx) => {
    const { counted_seq, compared_account } = await lockPosition(tx)
    const values = [counted_seq, seqMax, compared_account, limits.accountsMax]
    const [slice] = await query<{ compared: number }>(tx, compareSliceSql, values)
    if (slice!.compared === limits.accountsMax) return true
    await query(tx, endCycleSql)
    return false
  })

const readRangeSql = `
with again as (select count(*) as transfers, coalesce(sum(transfer_digest(t)), 0) as digest
    from transfer t where settled_seq > $1 and settled_seq <= $2),
  kept as (select coalesce(sum(transfers), 0) as transfers, coalesce(sum(digest), 0) as digest
    from ledger_block where number = $3),
  found as (select 'transfers' as what, 'block ' || $3::bigint as subject, kept.transfers || ', digest ' || kept.digest as recorded, again.transfers || ', digest ' || again.digest as counted
    from again, kept where (again.transfers, again.digest) <> (kept.transfers, kept.digest)),
  corrected as (delete from ledger_discrepancy where what = 'transfers' and subject = 'block ' || $3::bigint
    and not exists (select from found)),
  noted as (${noteSql})
update ledger_audit set read_block = $4`

/** Reads the next range of counted transfers again and compares its digest. Returns false after the last range. */
const readRange = ({ run }: AuditDeps): Promise<boolean> =>
  run(async (tx) => {
    const { counted_seq, read_block } = await lockPosition(tx)
    const from = read_block * rangeSize
    const to = from + rangeSize
    const isLast = to >= counted_seq
    const until = isLast ? counted_seq : to
    await query(tx, readRangeSql, [from, until, read_block, isLast ? 0n : read_block + 1n])
    return !isLast
  })

async function report({ pool, log }: AuditDeps): Promise<void> {
  const discrepancies = await query(
    pool,
    'select what, subject, recorded, counted, found_at from ledger_discrepancy order by found_at limit 10',
  )
  if (discrepancies.length > 0) log.error({ discrepancies }, 'the ledger disagrees with its transfers')
}

type Progress = { goal: bigint; changed: bigint[]; isCompared: boolean; slices: number; ranges: number }

/** Runs the next batch of the audit. Each batch stands alone, so the next run continues a run that ended early. */
async function runBatch(deps: AuditDeps, progress: Progress): Promise<boolean> {
  const { slicesMax, rangesMax, accountsMax } = deps.limits
  const changed = await countRange(deps, progress.goal)
  if (changed) {
    progress.changed = [...new Set([...progress.changed, ...changed])].slice(0, changedMax)
    return true
  }
  if (!progress.isCompared) {
    await compareChanged(deps, progress.changed.splice(0, accountsMax))
    progress.isCompared = progress.changed.length === 0
    return true
  }
  if (progress.slices < slicesMax) {
    progress.slices = (await compareSlice(deps)) ? progress.slices + 1 : slicesMax
    return true
  }
  if (progress.ranges < rangesMax) {
    progress.ranges = (await readRange(deps)) ? progress.ranges + 1 : rangesMax
    return true
  }
  return false
}

export function createLedgerAudit({
  limits = limitsDefault,
  ...rest
}: Omit<AuditDeps, 'limits'> & { limits?: AuditLimits }): MaintenanceJob {
  const deps = { ...rest, limits }
  let progress: Progress | undefined
  return {
    name,
    async runBatch() {
      progress ??= {
        goal: (await readSettled(deps.pool, limits.writersMsMax)) ?? 0n,
        changed: [],
        isCompared: false,
        slices: 0,
        ranges: 0,
      }
      if (await runBatch(deps, progress)) return true
      progress = undefined
      await report(deps)
      return false
    },
  }
}
