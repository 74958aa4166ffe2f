import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { BatchPlan } from '#engines/evm-batch/batch-plan.ts'
import { conflict, Fault } from '#kernel/contract/fault.ts'
import { balanceChange } from '#kernel/money/balance-changes.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { Payment } from '#upstreams/evm/till-contract.ts'
import {
  actionOf,
  type PaymentProof,
  type PaymentTrial,
  type RechargeTask,
  type RechargeTaskData,
} from './recharge-data.ts'
import type { EvmTill } from './till.ts'

/** A payment on an EVM chain is one call of the contract, alone in its batch, which names the task. */

export type EvmPaymentDeps = {
  batches: EvmBatches
  wire: {
    payData(taskId: string): string
    taskWord(taskId: string): string
    paymentsOf(logs: Receipt['logs'], till: string): Payment[]
    isTill(till: EvmTill): Promise<boolean>
  }
  evmAddressOf: (userId: string) => Promise<string>
}

export const evmTrial = ({ batches, wire, evmAddressOf }: EvmPaymentDeps): PaymentTrial<EvmTill> => ({
  accountOf: evmAddressOf,
  async ready(till) {
    const { id, displayName } = till.chain.row
    await batches.ready(id)
    // A till address without code would keep the coins and credit nothing.
    if (!(await wire.isTill(till)))
      throw new Fault(
        'unavailable',
        `Credits cannot be bought on ${displayName} now: its payment contract was not found`,
      )
  },
  coinsOf: async ({ chain }, account) => (await chain.balances(account, [])).nativeUnits,
  async chargeOf({ till, userId, account, amountUnits }) {
    const { id: chainId } = till.chain.row
    // The simulation names the user instead of a task; the name does not change the effect of the call.
    const call = { to: till.address, value: amountUnits, data: wire.payData(userId) }
    const simulation = await batches.simulate(chainId, account, [call])
    if (!simulation.ok) throw conflict(`The payment would fail: ${simulation.reason}`, simulation.reason)
    return batches.gasCharge({ chainId, gas: simulation.gas, fullExit: false })
  },
})

export const evmPlan = (
  { wire }: EvmPaymentDeps,
  till: EvmTill,
  { id, data }: RechargeTask,
  usdMicros: bigint,
): BatchPlan => {
  const amountUnits = BigInt(data.amount_units)
  return {
    ...actionOf({ ...till, address: data.till }, usdMicros),
    account: data.account,
    calls: [{ to: data.till, value: amountUnits, data: wire.payData(id) }],
    spends: [{ token: till.chain.row.native.address, amountUnits, spender: data.till }],
  }
}

type EvmDriverDeps = EvmPaymentDeps & {
  tillOf: (chainId: string) => EvmTill | undefined
  changed: (userId: string, chainId: string) => void
}

export const evmDriver = ({ batches, wire, tillOf, changed }: EvmDriverDeps) =>
  batches.driver<RechargeTaskData, PaymentProof>({
    // The payment on the chain names the task, so it is found although the database has lost the task.
    found({ data }, { receipt }) {
      const payment = wire
        .paymentsOf(receipt.logs, data.till)
        .find(({ payer }) => payer === data.account.toLowerCase())
      if (!payment) return undefined
      const { payer, amountUnits, index: logIndex } = payment
      const proof = { txHash: receipt.txHash, block: receipt.block, logIndex, payer, amountUnits }
      return { proof, data: { amount_units: String(amountUnits) } }
    },
    prove({ id, data }, receipt) {
      const isOwn = ({ payer, amountUnits, task }: Payment) =>
        payer === data.account.toLowerCase() &&
        amountUnits === BigInt(data.amount_units) &&
        task.toLowerCase() === wire.taskWord(id)
      const payment = wire.paymentsOf(receipt.logs, data.till).find(isOwn)
      if (!payment) return undefined
      const { payer, amountUnits, index: logIndex } = payment
      return { txHash: receipt.txHash, block: receipt.block, logIndex, payer, amountUnits }
    },
    balanceChanges({ data }) {
      const native = tillOf(data.chain_id)?.chain.row.native
      return native ? [balanceChange(data.chain_id, native, -BigInt(data.amount_units))] : []
    },
    onFinal: ({ userId, data }) => changed(userId, data.chain_id),
  })
