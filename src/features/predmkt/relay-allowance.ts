import { budgetSpent } from '#kernel/contract/fault.ts'
import { type Queryable, query } from '#store/query.ts'
import type { PredmktDeps } from './deps.ts'

/**
 * Limits what one user takes of the operator's quota at the relayer in a UTC day, so that none of them can use up what
 * all others need to withdraw.
 */

/** Exits may use so many times the allowance, and the rest the allowance alone: so the rest never uses up theirs. */
const exitShares = 2
const dayMs = 86_400_000
const kinds = ['predmkt_setup', 'predmkt_setup_v2', 'predmkt_withdraw', 'predmkt_redeem']

/**
 * Refuses an action whose user has used up the allowance. An admission counts tasks from their acceptance on, with all
 * their actions. A signature counts signed actions, because requests at the same time do not count each other.
 */
export async function assertRelays(
  { db, clock, limits }: Pick<PredmktDeps, 'clock' | 'limits'> & { db: Queryable },
  userId: string,
  { isExit, isSigning = false }: { isExit: boolean; isSigning?: boolean },
): Promise<void> {
  const nowMs = clock.now().getTime()
  const startMs = nowMs - (nowMs % dayMs)
  const [row] = await query<{ used: number }>(
    db,
    `select count(*)::int as used from task t
     left join effect e on e.task_id = t.id and e.kind = 'prediction_relay' and e.status <> 'dropped'
     where t.user_id = $1 and t.created_at >= $2
       and (e.id is not null or not $4 and (t.kind = any($3::text[]) or (t.kind = 'predmkt_fund' and t.step = 'relay')))`,
    [userId, new Date(startMs), kinds, isSigning],
  )
  const max = limits.relaysPerDay * (isExit ? exitShares : 1)
  if ((row?.used ?? 0) < max) return
  throw budgetSpent(
    'rate_limited',
    `The relayer of the venue runs ${max} such actions of one user in a day, and today's are used up`,
    {
      budget: 'predmkt_relays',
      owner: 'user',
      retryAfterSeconds: Math.ceil((startMs + dayMs - nowMs) / 1_000),
    },
  )
}
