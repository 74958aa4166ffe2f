import { type Clock, later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { send } from '#store/query.ts'
import type { Transactions } from './transactions.ts'

type Needs = {
  transactions: Transactions
  clock: Clock
  log: Log
  /** A run that began less than this ago stands for the present one. */
  intervalMs: number
}

const dayMs = 86_400_000
const eventsKeptMs = 7 * dayMs
/** Replies that moved no money; keys of tasks are kept for ever. */
const repliesKeptMs = 30 * dayMs
const batchMax = 1_000

export type Drift = { what: string; id: string; recorded: string; counted: string }

/** Counts the whole ledger again from its entries. An empty list is what a sound ledger gives. */
export async function auditLedger({ pool }: Transactions): Promise<Drift[]> {
  return send<Drift>(
    pool,
    `with counted as (select account_id, sum(d_avail) as avail, sum(d_held) as held from entry group by account_id),
       pending as (select debit, sum(amount) as held from transfer where state = 'pending' group by debit)
     select 'available' as what, a.id::text, a.avail::text as recorded, coalesce(c.avail, 0)::text as counted
       from account a left join counted c on c.account_id = a.id where a.avail <> coalesce(c.avail, 0)
     union all select 'held', a.id::text, a.held::text, coalesce(c.held, 0)::text
       from account a left join counted c on c.account_id = a.id where a.held <> coalesce(c.held, 0)
     union all select 'pending holds', a.id::text, a.held::text, coalesce(p.held, 0)::text
       from account a left join pending p on p.debit = a.id where a.held <> coalesce(p.held, 0)
     union all select 'sum of the asset', asset, '0', sum(avail + held)::text from account group by asset having sum(avail + held) <> 0`,
  )
}

/** Retention and audit: asked for by every instance, done by one of them in each interval. */
export function upkeep({ transactions, clock, log, intervalMs }: Needs) {
  const { pool } = transactions
  const isMine = async (): Promise<boolean> => {
    const taken = await send(
      pool,
      `insert into maintenance_run as m (name, started_at) values ('retention and audit', clock_timestamp())
       on conflict (name) do update set started_at = excluded.started_at
         where m.started_at < clock_timestamp() - make_interval(secs => $1) returning name`,
      [intervalMs / 1_000],
    )
    return taken.length > 0
  }
  /** In statements of bounded length, until nothing of that age is left. */
  const deleteAll = async (text: string, before: Date): Promise<void> => {
    while ((await send(pool, text, [before])).length === batchMax);
  }
  const forget = async () => {
    const now = clock.now()
    await deleteAll(
      `delete from outbox where (user_id, seq) in (select user_id, seq from outbox where at < $1 order by at limit ${batchMax})
       returning seq`,
      later(now, -eventsKeptMs),
    )
    await deleteAll(
      `delete from idempotency where (user_id, key) in
         (select user_id, key from idempotency where task_id is null and at < $1 order by at limit ${batchMax}) returning key`,
      later(now, -repliesKeptMs),
    )
  }
  return async (): Promise<void> => {
    if (!(await isMine())) return
    await forget()
    const drift = await auditLedger(transactions)
    if (drift.length > 0) log.error({ drift: drift.slice(0, 10) }, 'the ledger disagrees with its entries')
  }
}
