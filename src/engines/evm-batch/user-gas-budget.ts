import type { Clock } from '#kernel/clock.ts'
import { nativeDecimals } from '#kernel/money/money.ts'
import type { GasCharge } from '#kernel/task/gas-charge.ts'
import { type ChargedCost, sponsorCharge } from '#kernel/task/sponsored-effect.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'

/** Limits sponsored gas per user and UTC day, so that no user can use up the gas that others need to withdraw. */

export type GasBudget = {
  /** Returns the charge that the accepting statement compares with the budget, and counts. */
  chargeOf(cost: ChargedCost): GasCharge
  /** Returns the amount that a task is charged for its transaction on a chain, until the transaction is final. */
  chargedWei(taskId: string, chainId: string): Promise<bigint>
  /** Settles a charge in the transaction that ends the task. `wei` is the paid fee, 0n if nothing was mined. */
  settle(tx: Tx, taskId: string, wei: bigint): Promise<void>
}

/** Fees and gas can rise between admission and signature; the sponsor bears up to this multiple of the charge. */
const costFactorMax = 2n
export const exceedsCharge = (costWei: bigint, chargedWei: bigint): boolean =>
  costWei > chargedWei * costFactorMax

type GasBudgetDeps = { db: Queryable; budgetWeiOf: (chainId: string) => bigint; clock: Clock }

export function createGasBudget({ db, budgetWeiOf, clock }: GasBudgetDeps): GasBudget {
  const budget = { name: 'gas budget', decimals: nativeDecimals, clock }
  return {
    chargeOf: (cost) => sponsorCharge({ ...budget, budgetUnits: budgetWeiOf(cost.chainId) }, cost),
    async chargedWei(taskId, chainId) {
      const [row] = await query<{ wei: string }>(
        db,
        'select wei::text from sponsor_charge where task_id = $1 and chain_id = $2 and not is_final',
        [taskId, chainId],
      )
      return BigInt(row?.wei ?? '0')
    },
    async settle(tx, taskId, wei) {
      await query(tx, 'select sponsor_settle($1, $2::numeric)', [taskId, wei])
    },
  }
}
