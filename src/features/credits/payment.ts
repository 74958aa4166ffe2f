import type { BatchTaskData } from '#engines/evm-batch/batch-rules.ts'
import type { SvmTaskData } from '#engines/svm-transaction/transaction-rules.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { GasCharge, TaskView } from '#kernel/task/task.ts'
import { rechargeKind, type Till } from './till.ts'

/** One payment for credits, as the chains of each family make it. */

export type RechargeTaskData = BatchTaskData &
  SvmTaskData & {
    pack_id: string
    credits: number
    chain_id: string
    till: string
    account: string
    amount_units: string
    /** Dollars for one coin, by which the amount was computed. */
    native_price_usd: string
    /** The amount holds until then: a payment that is not signed by then fails. */
    locked_until: string
  }
export type RechargeTask = TaskView<RechargeTaskData>

/** A payment that is final. */
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
/** How a payment is tried before a task exists. */
export type PaymentTrial<T extends Till> = {
  accountOf(userId: string): Promise<string>
  /** Throws where nothing can be paid there now. */
  ready(till: T): Promise<void>
  coinsOf(till: T, account: string): Promise<bigint>
  /** Throws where the payment would fail; what it charges the sponsor's budget of the user. */
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
