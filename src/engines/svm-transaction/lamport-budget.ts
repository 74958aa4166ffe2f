import type { Clock } from '#kernel/clock.ts'
import { type BudgetOwner, Fault } from '#kernel/fault.ts'
import { fromUnits, lamportDecimals } from '#kernel/money.ts'
import type { GasCharge, Tx } from '#kernel/task.ts'
import { query } from '#store/query.ts'

/**
 * Fees and rent that the sponsor pays per user and UTC day. Rent counts in full: a token account that a user closes
 * elsewhere does not give it back.
 */

export type LamportOrder = {
  userId: string
  chainId: string
  /** The maximum cost of the transaction. */
  lamports: bigint
  /** A full exit counts towards the budget, and is never refused. */
  fullExit: boolean
}
export type LamportBudget = {
  /** What the accepting statement compares with the budget and counts. */
  chargeOf(order: LamportOrder): GasCharge
  /** Runs in the transaction that ends the task. `lamports`: what was paid, 0n where nothing landed. */
  settle(tx: Tx, taskId: string, lamports: bigint): Promise<void>
}

type LamportBudgetDeps = { budgetLamports: bigint; clock: Clock }

const dayMs = 86_400_000

export function lamportBudget({ budgetLamports, clock }: LamportBudgetDeps): LamportBudget {
  const refusal = (lamports: bigint, usedLamports: bigint): Fault => {
    const now = clock.now().getTime()
    const resetMs = dayMs - (now % dayMs)
    const resetAt = new Date(now + resetMs).toISOString()
    return new Fault(
      'rate_limited',
      `Your daily budget for fees and rent on Solana is used up; it resets at ${resetAt}`,
      {
        extras: {
          reason: 'sponsor_budget',
          budget: 'sponsor_gas_per_day',
          owner: 'user' satisfies BudgetOwner,
          limit: fromUnits(budgetLamports, lamportDecimals),
          used: fromUnits(usedLamports, lamportDecimals),
          required: fromUnits(lamports, lamportDecimals),
          full_again_at: resetAt,
          retry_after: Math.ceil(resetMs / 1_000),
        },
      },
    )
  }
  return {
    chargeOf: ({ chainId, lamports, fullExit }) => ({
      chainId,
      wei: lamports,
      budgetWei: fullExit ? null : budgetLamports,
      refuse: (usedLamports) => refusal(lamports, usedLamports),
    }),
    async settle(tx, taskId, lamports) {
      await query(tx, 'select sponsor_settle($1, $2::numeric)', [taskId, lamports])
    },
  }
}
