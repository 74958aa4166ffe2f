import type { SwapDeps } from '#features/swap/deps.ts'
import type { PaidUnits, SwapTask, SwapTaskData } from '#features/swap/task-data.ts'
import type { Token } from '#kernel/money/chains.ts'
import { fromUnits } from '#kernel/money/money.ts'
import type { ProviderStatus, ProviderTx } from '#kernel/money/swap-provider.ts'
import type { EndResult, JsonObject } from '#kernel/task/task.ts'
import { remembered } from './announced-transactions.ts'
import { errorOf, failureReasonOf } from './failure-reason.ts'
import { allOf, claimPayments, hasPaid, type Paid, type Payment, withPayments } from './payments.ts'
import { resultOf } from './result.ts'
import { isDeposited, type Verdict } from './verdict.ts'

/** This module ends a swap whose deposit was made. The result names everything that arrived. */

type End = EndResult<Partial<SwapTaskData>>
export type Ending = {
  task: SwapTask
  status: ProviderStatus
  announced: readonly ProviderTx[]
  paid: Paid
  at: Date
}
type Reason = { code: string; outcome: 'not_executed' | 'partial'; message: string }

export function endOfSwap(deps: SwapDeps, ending: Ending, verdict: Exclude<Verdict, 'none'>): End {
  if (verdict === 'filled') return filledSwap(deps, ending)
  if (ending.paid.returns.length === 0) return unfilled(deps, ending, tooLittle(ending))
  return unfilled(deps, ending, verdict === 'returned' ? returnOf(ending) : tooLittleBack)
}

function filledSwap(deps: SwapDeps, ending: Ending): End {
  const { result, counted } = countedOf(deps, ending)
  return { end: 'completed', outcome: 'executed', ...counted, result }
}

const amountText = (units: bigint, { decimals, symbol }: Token): string =>
  `${fromUnits(units, decimals)} ${symbol || 'of the token'}`

function tooLittle({ task: { data }, paid }: Ending): Reason {
  const { token } = data.destination
  const [units, minUnits] = [paid.fill?.units ?? 0n, BigInt(data.amount_out_min)]
  return {
    code: 'slippage',
    outcome: 'partial',
    message: `The provider paid ${amountText(units, token)}, less than the minimum of ${amountText(minUnits, token)}`,
  }
}

const tooLittleBack: Reason = {
  code: 'tx_failed',
  outcome: 'partial',
  message: 'The provider returned only a small part of the deposit',
}

/** Explains a swap that did not deliver its token: the result says what is in the wallet instead. */
function returnOf({ task: { data }, paid, status }: Ending): Reason {
  const main = mainReturn(data, paid)!
  const { chain, token } = main.place
  if (status.state === 'success' && !isDeposited(data, main))
    return {
      code: 'slippage',
      outcome: 'partial',
      message: `The provider paid ${token.symbol || 'another token'} instead of ${data.destination.token.symbol || 'the token'}`,
    }
  const isWhole = isWhollyBack(data, paid)
  if (chain.id !== data.origin.chain_id)
    return {
      code: 'refunded',
      outcome: 'partial',
      message: `The deposit was refunded on ${chain.displayName}`,
    }
  return {
    code: 'refunded',
    outcome: isWhole && !paid.fill ? 'not_executed' : 'partial',
    message: isWhole ? 'The deposit was refunded' : 'The deposit was refunded, less the cost of the refund',
  }
}

/** Ends a swap whose deposit left the wallet and whose provider has given up; later payments are watched for. */
export const failedSwap = (deps: SwapDeps, ending: Ending): End =>
  unfilled(deps, ending, {
    code: 'tx_failed',
    outcome: 'partial',
    message: `The provider could neither fill nor refund the deposit of request ${ending.task.data.provider_request_id}`,
  })

function unfilled(deps: SwapDeps, ending: Ending, { outcome, ...reason }: Reason): End {
  const { task, status, paid } = ending
  const { result, counted } = countedOf(deps, ending)
  const isShort = paid.fill !== undefined && paid.returns.length === 0
  return {
    end: 'failed',
    outcome,
    error: errorOf({ ...reason, provider: task.data.provider, ...status }),
    ...counted,
    result: { ...result, failure_reason: failureReasonOf(status) ?? (isShort ? 'slippage' : null) },
  }
}

/** Counts the payments for this swap alone, shows them in its data, and watches for further ones. */
function countedOf(deps: SwapDeps, { task, paid, announced, at }: Ending) {
  const { data } = task
  const all = allOf(paid)
  for (const { place } of all) deps.changed(task.userId, place.chain.id)
  const units = paidUnits(data, paid)
  const isOver = !mayFollow(data, units)
  const shown = {
    ...(all.length > 0 && withPayments(task, all)),
    ...(!isOver && { paid: units, announced: remembered(announced, hasPaid(paid)) }),
    note: null,
  }
  const counted: Pick<End, 'data' | 'writes'> = {
    data: shown,
    async writes(tx) {
      await claimPayments(tx, all, at)
      if (!isOver) await deps.watchLatePayment(tx, { ...task, data: { ...data, ...shown } })
    },
  }
  return { counted, result: shownResult(data, paid) }
}

function shownResult(data: SwapTaskData, paid: Paid): JsonObject {
  const { fill } = paid
  const filled = fill && {
    amount_out: String(fill.units),
    ...txOf(fill),
    deposit_tx_hash: data.deposit_tx ?? null,
  }
  const back = mainReturn(data, paid)
  return { ...resultOf(data), ...filled, ...(back && { refunded: refundView(back) }) }
}

function txOf({ place: { chain }, found }: Payment) {
  const txHash = found[0]!.txHash
  return { tx_hash: txHash, explorer_url: `${chain.explorerUrl}/tx/${txHash}` }
}

export const refundView = ({ place: { chain, token }, units, found }: Payment): JsonObject => ({
  chain_id: chain.id,
  token_address: token.address,
  amount: String(units),
  tx_hash: found[0]!.txHash,
})

const mainReturn = (data: SwapTaskData, { returns }: Paid): Payment | undefined =>
  returns.find((each) => isDeposited(data, each)) ?? returns[0]

function paidUnits(data: SwapTaskData, { fill, returns }: Pick<Paid, 'fill' | 'returns'>): PaidUnits {
  const back = returns.find((each) => isDeposited(data, each))
  return { fill: String(fill?.units ?? 0n), back: String(back?.units ?? 0n) }
}

const isWhollyBack = (data: SwapTaskData, paid: Paid): boolean =>
  BigInt(paidUnits(data, paid).back) >= BigInt(data.amount_in)

/** Whether more payments can arrive; only a whole fill or a whole refund rules that out. */
export const mayFollow = (
  { amount_out_min, amount_in }: Pick<SwapTaskData, 'amount_out_min' | 'amount_in'>,
  { fill, back }: PaidUnits,
): boolean => BigInt(fill) < BigInt(amount_out_min) && BigInt(back) < BigInt(amount_in)
