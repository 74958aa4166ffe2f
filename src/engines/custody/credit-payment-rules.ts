import type { EvmIntent, PaymentCall } from '#kernel/task/signer.ts'
import { assertRule, isSameAddress } from './assert-rule.ts'

/** Custody takes the contract for payments of credits, and the most units of one payment, from configuration. */

export type SigningTill = {
  address: string
  maxUnits: bigint
  /** The address that stands for the native coin. */
  native: string
}
type PaymentContext = { intent: EvmIntent; till: SigningTill | undefined }

/** The call has to be one payment for the task of the intent, alone in its batch. */
export function assertPayment(read: PaymentCall, { intent, till }: PaymentContext): void {
  assertRule(
    till !== undefined && isSameAddress(read.till, till.address),
    'contract',
    'the contract is not configured',
  )
  assertRule(intent.batch.calls.length === 1, 'payment', 'a payment is the only call of its batch')
  assertRule(read.taskId === intent.taskId, 'payment', 'the payment is for another task')
  const [spend, ...others] = intent.spends
  const isListed =
    spend !== undefined &&
    others.length === 0 &&
    isSameAddress(spend.token, till.native) &&
    isSameAddress(spend.spender, till.address) &&
    spend.amountUnits === read.valueUnits
  assertRule(isListed, 'payment', 'the payment is not the spend of the intent')
  assertRule(read.valueUnits > 0n, 'amount', 'the call takes nothing')
  assertRule(read.valueUnits <= till.maxUnits, 'cap', 'the payment exceeds the cap per signature')
}
