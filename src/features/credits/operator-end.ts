import { Fault } from '#kernel/contract/fault.ts'
import { balanceChange } from '#kernel/money/balance-changes.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { type OperatorEnd, unusedOption, wholeOrNothing } from '#kernel/task/operator-end.ts'
import { purchasedCredits } from './buckets.ts'
import { creditPaymentsOf, openPaymentsOf } from './payment-store.ts'
import { type RechargeTask, rechargeResult } from './recharge-data.ts'
import { rechargeKind } from './till.ts'

/** An operator ends a purchase of credits by booking payment and credits together, or neither. */

export const operatorEndOfRecharge =
  ({ chains }: { chains: readonly Chain[] }): OperatorEnd =>
  (view, ending, finding) => {
    const refused = wholeOrNothing(finding) ?? unusedOption(finding)
    if (refused) return refused
    const { id: taskId, userId, data } = view as RechargeTask
    if (finding.outcome === 'not_executed')
      return {
        ...ending,
        async writes(tx) {
          const [found] = await openPaymentsOf(tx, taskId)
          if (found) throw new Fault('conflict', `The payment of the task was made: ${found.tx_hash}`)
        },
      }
    const { txHash } = finding
    if (txHash === null) return { refusal: '--tx-hash is required: the transaction that has paid.' }
    const amountUnits = BigInt(data.amount_units)
    const native = chains.find(({ id }) => id === data.chain_id)?.native
    const paid = native ? [balanceChange(data.chain_id, native, -amountUnits)] : []
    const credits = purchasedCredits(userId, {
      key: `recharge:${taskId}`,
      credits: BigInt(data.credits),
      reason: rechargeKind,
    })
    return {
      ...ending,
      result: rechargeResult(data, { txHash, amountUnits }),
      data: { ...ending.data, balance_changes: paid },
      moves: [...(ending.moves ?? []), credits],
      writes: async (tx) => void (await creditPaymentsOf(tx, { taskId, txHash })),
    }
  }
