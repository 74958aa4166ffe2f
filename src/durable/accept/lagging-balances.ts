import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { canonicalAddress, toAssetId } from '#kernel/money/chains.ts'
import { toUnits } from '#kernel/money/money.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import { isInsufficientBalance } from './faults.ts'
import type { Place, ShownBalances } from './shown-balances.ts'

/**
 * A shortage is not final while the node may lag: the node may not show yet the units that the user's recent tasks
 * brought, or a balance that this instance has just shown to the user. Deposits from outside that no read has shown
 * are unknown here.
 */

/** Two nodes of a chain lag behind each other by less than this time. */
const lagMs = 60_000
const retryAfterSeconds = 1
const tasksMax = 100

type LaggingDeps = { pool: Queryable; clock: Clock; shownBalances: ShownBalances }

export async function throwWhereLagging(
  deps: LaggingDeps,
  userId: string | undefined,
  error: unknown,
): Promise<never> {
  if (userId === undefined || !isInsufficientBalance(error) || !(error instanceof Fault)) throw error
  const { chain_id: chainId, token, required, available, decimals } = error.extras
  if (typeof chainId !== 'string' || typeof decimals !== 'number') throw error
  const [requiredUnits, readUnits] = [required, available].map((each) => toUnits(String(each), decimals))
  const place = { chainId, token: String(token) }
  // The holds are read before the ended tasks: a task that ends in between counts in both, and never in neither.
  const heldUnits = await held(deps, userId, place)
  const broughtUnits = await recentlyBrought(deps, userId, place)
  const seenUnits = deps.shownBalances.unitsOf(userId, place, lagMs) ?? 0n
  // The shown balance may still include units that were spent after it was shown, so a net spend is subtracted.
  const knownUnits = max(broughtUnits, broughtUnits < 0n ? seenUnits + broughtUnits : seenUnits)
  // Units that open tasks hold are not available, and may be spent on the chain already, so they count twice.
  if (readUnits! + 2n * heldUnits >= knownUnits || requiredUnits! > knownUnits) throw error
  throw new Fault('unavailable', `${error.message}, and what arrived in the last minute is not shown yet`, {
    cause: error,
    extras: { ...error.extras, retry_after: retryAfterSeconds },
  })
}

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** Returns the units of a token that tasks of the last minute brought, minus those that they spent. */
async function recentlyBrought({ pool, clock }: LaggingDeps, userId: string, place: Place): Promise<bigint> {
  const rows = await query<{ changes: unknown }>(
    pool,
    `(select coalesce(data -> 'balance_changes', data -> 'credits') as changes from task
      where user_id = $1 and completed_at > $2 order by completed_at desc limit ${tasksMax})
     union all
     (select t.data -> 'balance_changes' from task_queue q join task t on t.id = q.task_id
      where q.user_id = $1 and t.updated_at > $2 order by q.task_id desc limit ${tasksMax})`,
    [userId, later(clock.now(), -lagMs)],
  )
  return rows
    .flatMap(({ changes }) => (Array.isArray(changes) ? (changes as unknown[]) : []))
    .filter((each): each is Record<string, unknown> => isRecord(each) && isAt(each, place))
    .reduce((sum, { amount }) => sum + BigInt(String(amount)), 0n)
}

async function held({ pool }: LaggingDeps, userId: string, { chainId, token }: Place): Promise<bigint> {
  const rows = await query<{ held: string }>(
    pool,
    'select coalesce(sum(held), 0)::text as held from account where owner = $1 and asset = $2',
    [userId, toAssetId({ id: chainId }, token)],
  )
  return BigInt(rows[0]!.held)
}

const isAt = ({ chain_id, token_address }: Record<string, unknown>, { chainId, token }: Place): boolean =>
  chain_id === chainId && canonicalAddress(String(token_address)) === canonicalAddress(token)
