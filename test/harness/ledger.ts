import type pg from 'pg'

/** How many accounts and assets disagree with the transfers, counted over the whole ledger. */
export async function ledgerDrift(db: pg.Pool): Promise<number> {
  const { rows } = await db.query<{ drift: string }>(`
    with side as (select debit as id, -posted as units from transfer where posted > 0
        union all select credit, posted from transfer where posted > 0),
      counted as (select id, sum(units) as units from side group by id),
      pending as (select debit as id, sum(amount) as held from transfer where state = 'pending' group by debit)
    select (select count(*) from (select 1 from account group by asset having sum(avail + held) <> 0) x)
      + (select count(*) from account a left join counted c using (id) left join pending p using (id)
          where a.avail + a.held <> coalesce(c.units, 0) or a.held <> coalesce(p.held, 0)) as drift`)
  return Number(rows[0]!.drift)
}
