import type { Clock } from '#kernel/clock.ts'
import { lamportDecimals } from '#kernel/money/money.ts'
import type { GasCharge } from '#kernel/task/gas-charge.ts'
import { type ChargedCost, sponsorCharge } from '#kernel/task/sponsored-effect.ts'
import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'

/** Limits fees and rent per user and UTC day. Rent counts in full, as the account may never be closed to return it. */

export type LamportBudget = {
  chargeOf(cost: ChargedCost): GasCharge
  /** Settles a charge in the transaction that ends the task; `lamports` is the amount paid, 0n if nothing landed. */
  settle(tx: Tx, taskId: string, lamports: bigint): Promise<void>
}

type LamportBudgetDeps = { budgetLamports: bigint; clock: Clock }

export function createLamportBudget({ budgetLamports, clock }: LamportBudgetDeps): LamportBudget {
  const name = 'budget for fees and rent on Solana'
  const budget = { name, decimals: lamportDecimals, budgetUnits: budgetLamports, clock }
  return {
    chargeOf: (cost) => sponsorCharge(budget, cost),
    async settle(tx, taskId, lamports) {
      await query(tx, 'select sponsor_settle($1, $2::numeric)', [taskId, lamports])
    },
  }
}
