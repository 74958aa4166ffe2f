import type { SvmTransactions } from '#engines/svm-transaction/transaction.ts'
import type { SvmPlan } from '#engines/svm-transaction/transaction-plan.ts'
import { conflict } from '#kernel/contract/fault.ts'
import type { SvmInstruction } from '#kernel/task/signer.ts'
import {
  actionOf,
  type PaymentProof,
  type PaymentTrial,
  type RechargeTask,
  type RechargeTaskData,
} from './recharge-data.ts'
import type { SvmTill } from './till.ts'

/** A payment on Solana is one transfer of SOL to the till's wallet, with a memo that names the task. */

export type SvmPaymentDeps = {
  svm: SvmTransactions
  instructions: {
    memo(text: string): SvmInstruction
    transferLamports(from: string, to: string, lamports: bigint): SvmInstruction
  }
  svmAddressOf: (userId: string) => Promise<string>
}
type Payment = { taskId: string; account: string; address: string; amountUnits: bigint; usdMicros: bigint }

const planOf = (
  { instructions }: SvmPaymentDeps,
  till: SvmTill,
  { taskId, account, address, amountUnits, usdMicros }: Payment,
): SvmPlan => ({
  ...actionOf({ ...till, address }, usdMicros),
  account,
  instructions: [instructions.memo(taskId), instructions.transferLamports(account, address, amountUnits)],
  lookupTables: [],
  spends: [{ token: till.chain.row.native.address, amountUnits, to: address }],
})

export const svmTrial = (deps: SvmPaymentDeps): PaymentTrial<SvmTill> => ({
  accountOf: deps.svmAddressOf,
  ready: (till) => deps.svm.ready(till.chain.row.id),
  coinsOf: ({ chain }, account) => chain.balance(account, chain.row.native.address, true),
  async chargeOf({ till, userId, account, amountUnits }) {
    // The simulation names the user instead of a task, and a value of zero dollars. Neither changes the transfer.
    const payment = { taskId: userId, account, address: till.address, amountUnits, usdMicros: 0n }
    const trial = await deps.svm.trial({ userId }, planOf(deps, till, payment))
    if (trial.ok) return trial.charge
    throw conflict(`The payment would fail: ${trial.reason}`, trial.reason)
  },
})

export const svmPlan = (
  deps: SvmPaymentDeps,
  till: SvmTill,
  { id: taskId, data }: RechargeTask,
  usdMicros: bigint,
): SvmPlan => {
  const { account, till: address } = data
  return planOf(deps, till, { taskId, account, address, amountUnits: BigInt(data.amount_units), usdMicros })
}

type SvmDriverDeps = SvmPaymentDeps & { changed: (userId: string, chainId: string) => void }

export const svmDriver = ({ svm, changed }: SvmDriverDeps) =>
  svm.driver<RechargeTaskData, PaymentProof>({
    // The memo on the chain names the task, so the payment is found although the database has lost the task.
    found({ data }, { signature, slot, lamportDeltas }) {
      const amountUnits = lamportDeltas.get(data.till) ?? 0n
      if (amountUnits <= 0n || lamportDeltas.get(data.account) !== -amountUnits) return undefined
      const proof = { txHash: signature, block: slot, logIndex: 0, payer: data.account, amountUnits }
      return { proof, data: { amount_units: String(amountUnits) } }
    },
    /** The stored bytes name payer, wallet and task, so the balances are enough to prove the payment. */
    prove({ data }, { signature, slot, lamportDeltas }) {
      const amountUnits = BigInt(data.amount_units)
      const isPaid =
        lamportDeltas.get(data.till) === amountUnits && lamportDeltas.get(data.account) === -amountUnits
      if (!isPaid) return undefined
      return { txHash: signature, block: slot, logIndex: 0, payer: data.account, amountUnits }
    },
    onFinal: ({ userId, data }) => changed(userId, data.chain_id),
  })
