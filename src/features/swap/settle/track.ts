import type { SwapDeps } from '#features/swap/deps.ts'
import type { SwapTask, SwapTaskData } from '#features/swap/task-data.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { ProviderStatus, ProviderTx, SwapProvider } from '#kernel/money/swap-provider.ts'
import { pollAgain, reviewPollMs } from '#kernel/task/poll-again.ts'
import type { StepContext, StepResultOf } from '#kernel/task/task.ts'
import { announcedOf, remembered } from './announced-transactions.ts'
import { allOf, chainOf, findPayments, hasPaid, type Paid } from './payments.ts'
import { endOfSwap, failedSwap } from './swap-end.ts'
import { type Verdict, verdictOf } from './verdict.ts'

/**
 * This module follows a swap whose deposit was made, until a fill, a refund or a lasting failure ends it. The
 * provider says where to look, and the chains prove what arrived.
 */

type Result<Names extends string = never> = StepResultOf<Partial<SwapTaskData>, Names>

const pollBackoff = { firstMs: 250, maxMs: 5_000 }
/** A fill can take minutes. After this time the task goes to review, and the polls become ever rarer. */
const reviewAfterMs = 60 * 60_000
const reviewPollMinMs = 60_000
/** An announced payment is on its chain within minutes. One that no chain proves after this time goes to review. */
const unprovenAfterMs = 10 * 60_000
/** A provider may withdraw a failure or refund after it, so the failure has to last this long before the swap ends. */
const failureLastsMs = 10 * 60_000
/** A payment of too little ends the swap only after this time, because the rest or a refund may follow. */
const shortLastsMs = 10 * 60_000
/**
 * If a refund would cost more than the deposit, none ever follows, so the wait is short; it only guards against a wrong
 * answer of the provider.
 */
const hopelessLastsMs = 2_000

/** Follows a swap by one poll; `next` is the name that this step has in its task. */
export async function trackSwap<Names extends string>(
  deps: SwapDeps,
  task: SwapTask,
  { now, signal, next }: StepContext & { next: Names },
): Promise<Result<Names>> {
  const { data } = task
  try {
    const status = await statusOf(deps, data, signal)
    const announced = announcedOf(data, status)
    const { paid, verdict } = await judge(deps, task, { status, announced })
    const said = saidSince(data, { status, announced, paid, verdict, now })
    const ending = { task, status, announced, paid, at: now }
    if (verdict === 'filled' || verdict === 'returned') return endOfSwap(deps, ending, verdict)
    if (status.state === 'failed' && hasLasted(status, said, now)) return failedSwap(deps, ending)
    if (isPaid(status) && said.short && ageOf(said.short.since, now) >= shortLastsMs)
      return endOfSwap(deps, ending, 'short')
    return waitForProvider(deps, task, { now, next, said, status, verdict })
  } catch (fault) {
    // The provider or a node is unavailable, and the deposit is not lost by that, so the poll is repeated.
    if (!(fault instanceof Fault)) throw fault
    const { failed_since = null, paid_since = null, short = null, announced = [] } = data
    const said = { failed_since, paid_since, short, announced }
    return waitForProvider(deps, task, { now, next, said, leastMs: retryAfterMs(fault) })
  }
}

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

type Announcement = { status: ProviderStatus; announced: readonly ProviderTx[] }
type Judged = { paid: Paid; verdict: Verdict }

const nothing: Paid = { fill: undefined, returns: [], isPending: false }

/** Judges the payments together, and only once those that a chain already shows are final. */
async function judge(deps: SwapDeps, task: SwapTask, { status, announced }: Announcement): Promise<Judged> {
  const isOver = isPaid(status) || status.state === 'failed'
  if (!isOver || announced.length === 0) return { paid: nothing, verdict: 'none' }
  const paid = await findPayments(deps, task, { status, announced, claims: 'own' })
  const verdict = paid.isPending ? 'none' : await verdictOf(deps, { data: task.data, paid })
  return { paid, verdict }
}

type Said = Required<Pick<SwapTaskData, 'failed_since' | 'paid_since' | 'short' | 'announced'>>
const isPaid = ({ state }: ProviderStatus): boolean => state === 'success' || state === 'refunded'
const ageOf = (since: string | Date, now: Date): number => now.getTime() - new Date(since).getTime()

/** Returns since when every answer of the provider has been the same: failed, paid, or paid too little. */
function saidSince(
  { failed_since: failedSince, paid_since: paidSince, short }: SwapTaskData,
  { status, announced, paid, verdict, now }: Announcement & Judged & { now: Date },
): Said {
  const since = now.toISOString()
  const shown = JSON.stringify([
    status.state,
    ...allOf(paid).flatMap(({ found }) => found.map(({ txHash, gain }) => `${txHash} ${gain.part}`)),
  ])
  return {
    failed_since: status.state === 'failed' ? (failedSince ?? since) : null,
    paid_since: isPaid(status) ? (paidSince ?? since) : null,
    short: verdict !== 'short' ? null : short?.paid === shown ? short : { since, paid: shown },
    announced: remembered(announced, hasPaid(paid)),
  }
}

function hasLasted(status: ProviderStatus, { failed_since: since }: Said, now: Date): boolean {
  const lastsMs = status.refundReason === 'AMOUNT_TOO_LOW_TO_REFUND' ? hopelessLastsMs : failureLastsMs
  return since !== null && ageOf(since, now) >= lastsMs
}

type Waiting<Names> = {
  now: Date
  next: Names
  said: Said
  status?: ProviderStatus
  verdict?: Verdict
  leastMs?: number
}

function waitForProvider<Names extends string>(
  deps: SwapDeps,
  task: SwapTask,
  { now, next, said, status, verdict, leastMs = 0 }: Waiting<Names>,
): Result<Names> {
  const { park, data } = pollAgain(task, next, pollBackoff)
  const isUnproven =
    verdict !== 'short' && said.paid_since !== null && ageOf(said.paid_since, now) > unprovenAfterMs
  const depositedMs = ageOf(task.data.deposited_at ?? task.createdAt, now)
  const isLate = isUnproven || depositedMs > reviewAfterMs
  const afterMs = isLate ? reviewPollMs(depositedMs, reviewPollMinMs) : park.afterMs
  const waiting = { park: { ...park, afterMs: Math.max(afterMs, leastMs) } }
  if (!isLate) return { ...waiting, data: { ...data, ...said, note: null }, state: 'settling' }
  const note = status && { note: whereabouts(deps, task.data, status) }
  return { ...waiting, data: { ...data, ...said, ...note }, state: 'review', outcome: 'unknown' }
}

function whereabouts(deps: SwapDeps, data: SwapTaskData, status: ProviderStatus): string {
  const { displayName } = chainOf(deps, data.origin.chain_id)
  const deposit = `the deposit is ${data.deposit_tx ?? 'not named'} on ${displayName}`
  const paid = isPaid(status) ? status.destinationTxs.at(-1) : undefined
  const provider = `${data.provider} (request ${data.provider_request_id})`
  if (!paid) return `${deposit}; ${provider} names no payment`
  const { displayName: paidOn } = chainOf(deps, paid.chainId)
  return `${deposit}; ${provider} says that it paid with ${paid.txHash} on ${paidOn}, and no proof shows the amount`
}
