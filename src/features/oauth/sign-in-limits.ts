import { createHash } from 'node:crypto'
import { type Clock, later } from '#kernel/clock.ts'
import { type Queryable, query } from '#store/query.ts'

/** Budgets of guesses, messages and first credits are in the database, so that all instances share them. */

/** A budget allows `max` uses of its name per window; a window begins with the first use after the end of the last. */
export type Budget = Readonly<{ name: string; max: number; windowMs?: number }>
export type SignInLimits = {
  /**
   * Counts one use of each name, and returns the budgets that it exceeds; budgets of one name share its count. `on` is
   * a transaction; if it rolls back, nothing is counted.
   */
  take(budgets: readonly Budget[], on?: Queryable): Promise<Budget[]>
  count(budget: Budget): Promise<number>
  /** Gives counted uses back, because the attempt that took them did not fail. */
  giveBack(budgets: readonly Budget[]): Promise<void>
}

export const guessesPerAddress = (address: string): Budget => ({ name: `guess|${address}`, max: 60 })

const guessWindowMs = 15 * 60_000
const countMax = 1_000_000

const keyOf = ({ name }: Budget): Buffer => createHash('sha256').update(name).digest()
/** One SQL statement cannot count a row twice, so each name of a budget occurs once. */
const withUniqueNames = (budgets: readonly Budget[]): Budget[] => [
  ...new Map(budgets.map((budget) => [budget.name, budget])).values(),
]

type SignInLimitsDeps = { db: Queryable; clock: Clock; windowMs?: number }

export function createSignInLimits({ db, clock, windowMs = guessWindowMs }: SignInLimitsDeps): SignInLimits {
  return {
    async take(budgets, on = db) {
      const now = clock.now()
      const unique = withUniqueNames(budgets)
      // One statement reads and counts, so parallel guesses count too; the order prevents a deadlock.
      const rows = await query<{ key: Buffer; count: number }>(
        on,
        `insert into sign_in_limit as known (key, count, ends_at)
         select key, 1, ends_at from unnest($1::bytea[], $2::timestamptz[]) as taken (key, ends_at) order by key
         on conflict (key) do update set
           count = case when known.ends_at <= $3 then 1 else least(known.count + 1, ${countMax}) end,
           ends_at = case when known.ends_at <= $3 then excluded.ends_at else known.ends_at end
         returning key, count`,
        [unique.map(keyOf), unique.map((each) => later(now, each.windowMs ?? windowMs)), now],
      )
      const counts = new Map(rows.map(({ key, count }) => [key.toString('hex'), count]))
      return budgets.filter((budget) => (counts.get(keyOf(budget).toString('hex')) ?? 0) > budget.max)
    },
    async count(budget) {
      const [row] = await query<{ count: number }>(
        db,
        'select count from sign_in_limit where key = $1 and ends_at > $2',
        [keyOf(budget), clock.now()],
      )
      return row?.count ?? 0
    },
    async giveBack(budgets) {
      await query(
        db,
        `with taken as (select key from sign_in_limit where key = any($1) order by key for update)
         update sign_in_limit set count = count - 1
         where key in (select key from taken) and count > 0 returning key`,
        [budgets.map(keyOf)],
      )
    },
  }
}
