/** This module decides which payment belongs to which task. No rule credits a stray payment; an operator decides. */

export const strayReasons = [
  'no_task',
  'unknown_task',
  'other_payer',
  'other_chain',
  'other_amount',
  'task_ended',
  'token',
] as const
export type StrayReason = (typeof strayReasons)[number]

export type SeenPayment = {
  chainId: string
  txHash: string
  payer: string
  amountUnits: bigint
}
export type PaidTask = {
  isLive: boolean
  account: string
  chainId: string
  amountUnits: bigint
  /** The transaction that the task credited. */
  txHash: string | null
}
export type PaymentVerdict = 'wait' | 'credited' | StrayReason

/** Judges a payment; `task` is undefined if the payment names no task that takes payments. */
export function judgePayment(payment: SeenPayment, task: PaidTask | undefined): PaymentVerdict {
  if (!task) return 'unknown_task'
  if (payment.payer.toLowerCase() !== task.account.toLowerCase()) return 'other_payer'
  if (payment.chainId !== task.chainId) return 'other_chain'
  if (payment.amountUnits !== task.amountUnits) return 'other_amount'
  if (task.isLive) return 'wait'
  // The log index is not compared, as it may have differed in a block that was reorganised away.
  return payment.txHash.toLowerCase() === task.txHash?.toLowerCase() ? 'credited' : 'task_ended'
}
