import type { Clock } from '#kernel/clock.ts'
import { lamportDecimals } from '#kernel/money/money.ts'
import { sponsorBudgetUsed } from '#kernel/money/sponsor-budget.ts'
import type { GasCharge, Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'

/** Limits fees and rent per user and UTC day. Rent counts in full, as the account may never be closed to return it. */

export type LamportOrder = {
  userId: string
  chainId: string
  /** The maximum cost of the transaction. */
  lamports: bigint
  /** A full exit counts towards the budget, but is never refused. */
  fullExit: boolean
}
export type LamportBudget = {
  chargeOf(order: LamportOrder): GasCharge
  /** Runs in the transaction that ends the task. `lamports` is what was paid, 0n if nothing landed. */
  settle(tx: Tx, taskId: string, lamports: bigint): Promise<void>
}

type LamportBudgetDeps = { budgetLamports: bigint; clock: Clock }

export function createLamportBudget({ budgetLamports, clock }: LamportBudgetDeps): LamportBudget {
  return {
    chargeOf: ({ chainId, lamports, fullExit }) => ({
      chainId,
      wei: lamports,
      budgetWei: fullExit ? null : budgetLamports,
      refuse: (usedLamports) =>
        sponsorBudgetUsed({
          name: 'budget for fees and rent on Solana',
          decimals: lamportDecimals,
          budgetUnits: budgetLamports,
          usedUnits: usedLamports,
          requiredUnits: lamports,
          clock,
        }),
    }),
    async settle(tx, taskId, lamports) {
      await query(tx, 'select sponsor_settle($1, $2::numeric)', [taskId, lamports])
    },
  }
}
