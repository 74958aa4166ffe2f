import type { ActScope } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'
import type { PredmktDeps } from './deps.ts'

/** What a user acknowledges before trading. A changed text gets a new version, and is acknowledged anew. */
const version = '2026-11'
const text =
  'A share of an outcome pays 1 USD or nothing, so it can become worthless. A market is resolved by the rules of the venue and its oracle, which can differ from what you expect. The venue decides who may trade, and from where; whether you may is yours to know. Nothing here is advice.'

export async function acknowledge({ clock }: Pick<PredmktDeps, 'clock'>, userId: string, { tx }: ActScope) {
  const [row] = await query<{ at: Date }>(
    tx,
    `update app_user set
       disclaimer_acknowledged_at =
         case when disclaimer_version = $3 then disclaimer_acknowledged_at else $2 end,
       disclaimer_version = $3
     where id = $1 returning disclaimer_acknowledged_at as at`,
    [userId, clock.now(), version],
  )
  return { acknowledged_at: row!.at.toISOString(), version }
}

/** When the user acknowledged the text of today; undefined while that is to be done. */
export async function acknowledgedAt(db: Queryable, userId: string): Promise<Date | undefined> {
  const row = await fetchOne(
    db,
    builder
      .selectFrom('app_user')
      .select('disclaimer_acknowledged_at as at')
      .where('id', '=', userId)
      .where('disclaimer_version', '=', version),
  )
  return row?.at ?? undefined
}

export async function assertAcknowledged({ db }: Pick<PredmktDeps, 'db'>, userId: string): Promise<void> {
  if (await acknowledgedAt(db, userId)) return
  throw new Fault(
    'disclaimer_required',
    'The disclaimer on prediction markets is to be acknowledged first: `predmkt_acknowledge_disclaimer` does that',
    { extras: { disclaimer: text, version } },
  )
}
