import { unclaimed } from '#engines/chain-arrivals/claims.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import type { SwapTask, SwapTaskData } from '#features/swap/task-data.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { FoundPayment } from '#kernel/task/operator-end.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { bookPayments } from './late-payment.ts'
import { paymentPart } from './operator-end.ts'
import { chainOf, type Payment } from './payments.ts'
import { worthOfUnits } from './verdict.ts'

/** This module adds a payment that an operator has found to a swap that has ended, as the swap's watch would do. */

export const foundTypes = ['fill', 'refund'] as const
type EndedSwap = { id: string; userId: string; createdAt: Date; data: JsonObject }
type Found = { type: (typeof foundTypes)[number]; payment: FoundPayment; units: bigint; at: Date }

export async function addFoundPayment(
  deps: Pick<SwapDeps, 'chains'>,
  tx: Tx,
  { id, userId, createdAt, data: own }: EndedSwap,
  { type, payment, units, at }: Found,
): Promise<NewEvent[]> {
  // A funding or a withdrawal holds its swap as one of its legs.
  const data = (own.swap ?? own) as SwapTaskData
  if (data.deposit_tx === undefined || data.provider_request_id === undefined)
    throw new Fault('conflict', 'The task has no swap whose deposit was made')
  const isFill = type === 'fill'
  const side = isFill ? data.destination : data.origin
  const chain = chainOf(deps, side.chain_id)
  const part = paymentPart(chain, side, payment)
  if (part === undefined)
    throw new Fault('conflict', 'The payment needs the number of the event that shows it: <hash>:<log>')
  const { txHash } = payment
  const receiver = { chain, account: side.account, claimant: '' }
  const free = await unclaimed(tx, receiver, [{ txHash, part }])
  if (free.length === 0)
    throw new Fault(
      'conflict',
      `The payment ${txHash} is counted already for a task, or the gateway sent it itself: check the hash and the number of the log`,
    )
  const task = { id, userId, createdAt, data } as SwapTask
  const arrival = { gained: [], isFinal: true, block: null, at: undefined }
  const found: Payment = {
    place: { chain, owner: side.account, token: side.token, task, isFill },
    found: [{ arrival, gain: { token: side.token.address, amountUnits: units, part }, txHash }],
    units,
  }
  const worthOf = () => worthOfUnits(data, isFill ? 'fill' : 'back', units)
  const { events } = await bookPayments(deps, tx, {
    swap: task,
    payments: [found],
    at,
    worthOf,
    savedAt: at,
  })
  return events
}
