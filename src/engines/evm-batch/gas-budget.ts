import type { Clock } from '#kernel/clock.ts'
import { type BudgetOwner, Fault } from '#kernel/fault.ts'
import { fromUnits, nativeDecimals } from '#kernel/money.ts'
import type { GasCharge, Tx } from '#kernel/task.ts'
import { query } from '#store/query.ts'

/** Sponsored gas per user and UTC day, so that one user cannot use up the gas that others need to withdraw. */

export type GasOrder = {
  userId: string
  chainId: string
  /** The maximum cost of the transaction. */
  wei: bigint
  /** A full withdrawal counts towards the budget, and is never refused. */
  fullExit: boolean
}
export type GasBudget = {
  /** What the accepting statement compares with the budget and counts. */
  chargeOf(order: GasOrder): GasCharge
  /** Runs in the transaction that ends the task. `wei`: the fee paid, 0n where nothing was mined. */
  settle(tx: Tx, taskId: string, wei: bigint): Promise<void>
}

type GasBudgetDeps = { budgetWei: bigint; clock: Clock }

const dayMs = 86_400_000

export function gasBudget({ budgetWei, clock }: GasBudgetDeps): GasBudget {
  const budgetOf = ({ fullExit }: GasOrder) => (fullExit ? null : budgetWei)

  const refusal = ({ wei }: GasOrder, usedWei: bigint): Fault => {
    const now = clock.now().getTime()
    const resetMs = dayMs - (now % dayMs)
    const resetAt = new Date(now + resetMs).toISOString()
    return new Fault('rate_limited', `Your daily gas budget is used up; it resets at ${resetAt}`, {
      extras: {
        reason: 'sponsor_budget',
        budget: 'sponsor_gas_per_day',
        owner: 'user' satisfies BudgetOwner,
        limit: fromUnits(budgetWei, nativeDecimals),
        used: fromUnits(usedWei, nativeDecimals),
        required: fromUnits(wei, nativeDecimals),
        full_again_at: resetAt,
        retry_after: Math.ceil(resetMs / 1_000),
      },
    })
  }

  return {
    chargeOf(order) {
      const { chainId, wei } = order
      const refuse = (usedWei: bigint) => refusal(order, usedWei)
      return { chainId, wei, budgetWei: budgetOf(order), refuse }
    },
    async settle(tx, taskId, wei) {
      await query(tx, 'select sponsor_settle($1, $2::numeric)', [taskId, wei])
    },
  }
}
