import { sameAddress, type Token } from '#kernel/chains.ts'
import { Fault } from '#kernel/fault.ts'
import { addToResult } from '#kernel/one-effect.ts'
import { pollAgain, reviewPollMs } from '#kernel/poll-again.ts'
import type { ProviderStatus, SwapProvider } from '#kernel/swap-provider.ts'
import type { StepContext, StepResultOf } from '#kernel/task.ts'
import type { SwapDeps } from './deps.ts'
import { errorOf, failureReasonOf } from './failure.ts'
import {
  chainOf,
  claimPayment,
  findFill,
  findOtherPayment,
  findRefund,
  type Payment,
  tokenOfPayment,
  withPayment,
} from './payments.ts'
import { resultOf } from './result.ts'
import type { SwapTask, SwapTaskData } from './task-data.ts'

/**
 * A deposit was made, so the task ends only with a fill, a refund or a lasting failure. The provider says where to look;
 * the chains prove what arrived.
 */

type Result<Names extends string = never> = StepResultOf<Partial<SwapTaskData>, Names>

const pollBackoff = { firstMs: 250, maxMs: 5_000 }
/** A fill can take minutes; after this time an operator looks into it, and the polls go on, ever more rarely. */
const reviewAfterMs = 60 * 60_000
const reviewPollMinMs = 60_000
/** A payment that is announced is there in minutes; one that no chain proves is for an operator. */
const unprovenAfterMs = 10 * 60_000
/** A provider may take a failure back or refund after it: one that it gives up has to last. */
const failureLastsMs = 10 * 60_000
/** The refund would cost more than the deposit: nothing follows, unless the answer itself was wrong. */
const hopelessLastsMs = 2_000

/** `next`: the name of this step in its task. */
export async function trackSwap<Names extends string>(
  deps: SwapDeps,
  task: SwapTask,
  { now, signal, next }: StepContext & { next: Names },
): Promise<Result<Names>> {
  const { data } = task
  try {
    const status = await statusOf(deps, data, signal)
    const end = await endOf(deps, task, { status, now })
    return end ?? waitForProvider(deps, task, { now, next, said: saidSince(data, status, now), status })
  } catch (fault) {
    // The provider or a node is away: what was deposited is not lost by that.
    if (!(fault instanceof Fault)) throw fault
    const { failed_since = null, paid_since = null } = data
    const said = { failed_since, paid_since }
    return waitForProvider(deps, task, { now, next, said, leastMs: retryAfterMs(fault) })
  }
}

/** As long as the provider asks to wait. */
const retryAfterMs = ({ extras: { retry_after: seconds } }: Fault): number =>
  typeof seconds === 'number' ? Math.min(seconds * 1_000, reviewPollMinMs) : 0

export async function statusOf(
  { providers }: SwapDeps,
  data: SwapTaskData,
  signal: AbortSignal,
): Promise<ProviderStatus> {
  const provider = providers.find((each: SwapProvider) => each.name === data.provider)
  if (!provider) throw new Fault('unavailable', `The provider ${data.provider} is not configured`)
  const request = {
    providerRequestId: data.provider_request_id,
    originChainId: data.origin.chain_id,
    destinationChainId: data.destination.chain_id,
    originTxHash: data.deposit_tx ?? null,
  }
  return provider.status(request, signal)
}

type Said = Required<Pick<SwapTaskData, 'failed_since' | 'paid_since'>>
const isPaid = ({ state }: ProviderStatus): boolean => state === 'success' || state === 'refunded'

/** Since when the provider has called the request failed, or paid, without a break. */
function saidSince(
  { failed_since: failedSince, paid_since: paidSince }: SwapTaskData,
  status: ProviderStatus,
  now: Date,
): Said {
  return {
    failed_since: status.state === 'failed' ? (failedSince ?? now.toISOString()) : null,
    paid_since: isPaid(status) ? (paidSince ?? now.toISOString()) : null,
  }
}

function hasLasted({ data }: SwapTask, { status, now }: Reading): boolean {
  const lastsMs = status.refundReason === 'AMOUNT_TOO_LOW_TO_REFUND' ? hopelessLastsMs : failureLastsMs
  const { failed_since: since } = saidSince(data, status, now)
  return now.getTime() - new Date(since ?? now).getTime() >= lastsMs
}

type Waiting<Names> = { now: Date; next: Names; said: Said; status?: ProviderStatus; leastMs?: number }

function waitForProvider<Names extends string>(
  deps: SwapDeps,
  task: SwapTask,
  { now, next, said, status, leastMs = 0 }: Waiting<Names>,
): Result<Names> {
  const { park, data } = pollAgain(task, next, pollBackoff)
  const ageMs = (since: string | Date) => now.getTime() - new Date(since).getTime()
  const isUnproven = said.paid_since !== null && ageMs(said.paid_since) > unprovenAfterMs
  const depositedMs = ageMs(task.data.deposited_at ?? task.createdAt)
  const isLate = isUnproven || depositedMs > reviewAfterMs
  const afterMs = isLate ? reviewPollMs(depositedMs, reviewPollMinMs) : park.afterMs
  const waiting = { park: { ...park, afterMs: Math.max(afterMs, leastMs) } }
  if (!isLate) return { ...waiting, data: { ...data, ...said, note: null }, state: 'settling' }
  const note = status && { note: whereabouts(deps, task.data, status) }
  return { ...waiting, data: { ...data, ...said, ...note }, state: 'review', outcome: 'unknown' }
}

/** Where the money is, as far as it is known. */
function whereabouts(deps: SwapDeps, data: SwapTaskData, status: ProviderStatus): string {
  const { displayName } = chainOf(deps, data.origin.chain_id)
  const deposit = `the deposit is ${data.deposit_tx ?? 'not named'} on ${displayName}`
  const paid = isPaid(status) ? status.destinationTxs.at(-1) : undefined
  const provider = `${data.provider} (request ${data.provider_request_id})`
  if (!paid) return `${deposit}; ${provider} names no payment`
  const { displayName: paidOn } = chainOf(deps, paid.chainId)
  return `${deposit}; ${provider} says that it paid with ${paid.txHash} on ${paidOn}, and no proof shows the amount`
}

type Reading = { status: ProviderStatus; now: Date }

async function endOf(deps: SwapDeps, task: SwapTask, reading: Reading): Promise<Result | undefined> {
  const { status } = reading
  if (status.state === 'success') return filled(deps, task, reading)
  if (status.state === 'refunded') return refunded(deps, task, reading)
  if (status.state === 'failed' && hasLasted(task, reading)) return failed(deps, task, status)
  return undefined
}

async function filled(deps: SwapDeps, task: SwapTask, reading: Reading): Promise<Result | undefined> {
  const { status, now: at } = reading
  const { data, userId } = task
  const payment = await findFill(deps, task, status)
  // Success was announced before its payment, or without one: the next answer says which.
  if (!payment) return status.paidToken === null ? undefined : paidOtherwise(deps, task, reading)
  const { gain, txHash } = payment.found
  const { chain } = payment.place
  deps.changed(userId, chain.id)
  const isShort = gain.amountUnits < BigInt(data.amount_out_min)
  const end: Result = {
    end: 'completed',
    outcome: isShort ? 'partial' : 'executed',
    data: {
      ...withPayment(task, payment, data.destination.token),
      note: isShort ? 'the provider filled less than the minimum' : null,
    },
    result: {
      ...resultOf(data),
      amount_out: String(gain.amountUnits),
      tx_hash: txHash,
      explorer_url: `${chain.explorerUrl}/tx/${txHash}`,
      deposit_tx_hash: data.deposit_tx ?? null,
    },
  }
  return claimed(end, payment, at)
}

/** The end of a swap by what arrived. */
const claimed = (result: Result, payment: Payment, at: Date): Result =>
  addToResult(result, { writes: (tx) => claimPayment(tx, payment, at) })

async function refunded(deps: SwapDeps, task: SwapTask, reading: Reading): Promise<Result | undefined> {
  const { data } = task
  const { token } = data.origin
  const payment = await findRefund(deps, task, reading.status)
  if (!payment) return undefined
  const { chain } = payment.place
  const { gain } = payment.found
  const isBack = chain.id === data.origin.chain_id
  const isWhole =
    isBack && sameAddress(chain, gain.token, token.address) && gain.amountUnits >= BigInt(data.amount_in)
  return returned(
    deps,
    { ...reading, payment, token: isBack ? token : data.destination.token },
    {
      code: 'refunded',
      outcome: isWhole ? 'not_executed' : 'partial',
      message: refundMessage({ isWhole, otherChain: isBack ? null : chain.displayName }),
    },
  )
}

type RefundWords = { isWhole: boolean; otherChain: string | null }
function refundMessage({ isWhole, otherChain }: RefundWords): string {
  if (otherChain !== null) return `The deposit was refunded on ${otherChain}`
  return isWhole ? 'The deposit was refunded' : 'The deposit was refunded, less the cost of the refund'
}

/** The provider succeeded with another token than the swap asked for, as one does whose last trade failed. */
async function paidOtherwise(deps: SwapDeps, task: SwapTask, reading: Reading): Promise<Result | undefined> {
  const { status } = reading
  if (status.paidToken === null) return undefined
  const payment = await findOtherPayment(deps, task, { ...status, paidToken: status.paidToken })
  if (!payment) return undefined
  const { token } = task.data.destination
  return returned(
    deps,
    { ...reading, payment, token },
    {
      code: 'slippage',
      outcome: 'partial',
      message: `The provider paid ${payment.token.symbol || 'another token'} instead of ${token.symbol || 'the token'}`,
    },
  )
}

type Return = Reading & { payment: Payment; token: Token }
type ReturnWords = { code: string; outcome: 'not_executed' | 'partial'; message: string }

/** The swap did not deliver its token: the result says what is in the wallet instead. */
function returned(
  deps: SwapDeps,
  { payment, now, status, token }: Return,
  { outcome, ...reason }: ReturnWords,
): Result {
  const { chain, task } = payment.place
  const { gain, txHash } = payment.found
  deps.changed(task.userId, chain.id)
  const named = tokenOfPayment(payment, token)
  const end: Result = {
    end: 'failed',
    outcome,
    error: errorOf({ ...reason, provider: task.data.provider, ...status }),
    data: withPayment(task, payment, named),
    result: {
      ...resultOf(task.data),
      refunded: {
        chain_id: chain.id,
        token_address: named.address,
        amount: String(gain.amountUnits),
        tx_hash: txHash,
      },
      failure_reason: failureReasonOf(status),
    },
  }
  return claimed(end, payment, now)
}

/** The deposit left the wallet and nothing came back: the result says where it is, and later payments are watched for. */
function failed(deps: SwapDeps, task: SwapTask, status: ProviderStatus): Result {
  const { data } = task
  return {
    end: 'failed',
    outcome: 'partial',
    error: errorOf({
      code: 'tx_failed',
      message: `The provider could neither fill nor refund the deposit of request ${data.provider_request_id}`,
      provider: data.provider,
      ...status,
    }),
    result: { ...resultOf(data), failure_reason: failureReasonOf(status) },
    writes: (tx) => deps.watchLatePayment(tx, task),
  }
}
