import type { BatchTaskData } from '#engines/evm-batch/batch-plan.ts'
import type { SvmTaskData } from '#engines/svm-transaction/transaction-plan.ts'
import type { GasCharge } from '#kernel/task/gas-charge.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { TaskView } from '#kernel/task/task.ts'
import { rechargeKind, type Till } from './till.ts'

export type RechargeTaskData = BatchTaskData &
  SvmTaskData & {
    pack_id: string
    credits: number
    chain_id: string
    till: string
    account: string
    amount_units: string
    /** The price of one native coin in dollars from which the amount was computed. */
    native_price_usd: string
    /** The amount is valid until this time; a payment that is not signed by then fails. */
    locked_until: string
  }
export type RechargeTask = TaskView<RechargeTaskData>

export type PaymentProof = {
  txHash: string
  block: bigint
  logIndex: number
  payer: string
  amountUnits: bigint
}
export type PaymentOrder<T extends Till> = { till: T; userId: string; account: string; amountUnits: bigint }
export const rechargeResult = (
  { pack_id, credits, chain_id, native_price_usd }: RechargeTaskData,
  { txHash, amountUnits }: Pick<PaymentProof, 'txHash' | 'amountUnits'>,
) => ({ pack_id, credits, chain_id, tx_hash: txHash, paid: String(amountUnits), native_price_usd })
export type PaymentTrial<T extends Till> = {
  accountOf(userId: string): Promise<string>
  /** Throws if the till cannot take a payment now. */
  ready(till: T): Promise<void>
  coinsOf(till: T, account: string): Promise<bigint>
  /** Returns the gas that the payment charges to the user's sponsor budget; throws if the payment would fail. */
  chargeOf(order: PaymentOrder<T>): Promise<GasCharge>
}

export const actionOf = ({ chain, address }: Till, usdMicros: bigint): Omit<PlannedAction, 'userId'> => ({
  operation: rechargeKind,
  chainId: chain.row.id,
  tokens: [chain.row.native.address],
  recipients: [address],
  usdMicros,
  exit: false,
})
