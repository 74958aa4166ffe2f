import { sameAddress } from '#kernel/chains.ts'
import { Fault } from '#kernel/fault.ts'
import type { JsonObject } from '#kernel/json.ts'
import { pollAgain } from '#kernel/poll-again.ts'
import type { ProviderStatus, SwapProvider } from '#kernel/swap-provider.ts'
import type { StepContext, StepResultOf } from '#kernel/task.ts'
import type { Arrival } from './arrivals.ts'
import type { SwapDeps } from './deps.ts'
import { errorOf, failureReasonOf } from './outcome.ts'
import { changeView, resultOf } from './result.ts'
import type { SwapStep, SwapTask, SwapTaskData } from './task-data.ts'

/**
 * A deposit was made, so the task ends only with a fill, a refund or a lasting failure. The provider says where to look;
 * the chains prove what arrived.
 */

type Result = StepResultOf<Partial<SwapTaskData>, SwapStep>

const pollBackoff = { firstMs: 250, maxMs: 5_000 }
/** A fill can take minutes; after this time an operator looks into it, and the polls go on. */
const reviewAfterMs = 60 * 60_000
const reviewPollMs = 60_000
/** A provider may take a failure back, so that it has to say so for a while. */
const failuresMin = 4

export async function trackSwap(
  deps: SwapDeps,
  task: SwapTask,
  { now, signal }: StepContext,
): Promise<Result> {
  try {
    const status = await statusOf(deps, task.data, signal)
    return (await endOf(deps, task, status)) ?? wait(task, now, failuresOf(task.data, status))
  } catch (fault) {
    // The provider or a node is away: what was deposited is not lost by that.
    if (!(fault instanceof Fault)) throw fault
    return wait(task, now, task.data.failures ?? 0)
  }
}

async function statusOf(
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

const failuresOf = ({ failures = 0 }: SwapTaskData, { state }: ProviderStatus): number =>
  state === 'failed' ? failures + 1 : 0

function wait(task: SwapTask, now: Date, failures: number): Result {
  const { park, data } = pollAgain(task, 'track', pollBackoff)
  const depositedAt = new Date(task.data.deposited_at ?? task.createdAt)
  const isLate = now.getTime() - depositedAt.getTime() > reviewAfterMs
  return {
    park: isLate ? { ...park, afterMs: reviewPollMs } : park,
    data: { ...data, failures },
    ...(isLate ? { state: 'review', outcome: 'unknown' } : { state: 'settling' }),
  }
}

async function endOf(deps: SwapDeps, task: SwapTask, status: ProviderStatus): Promise<Result | undefined> {
  if (status.state === 'success') return filled(deps, task, status)
  if (status.state === 'refunded') return refunded(deps, task, status)
  if (status.state === 'failed' && failuresOf(task.data, status) >= failuresMin) return failed(task, status)
  return undefined
}

type Found = { arrival: Arrival; txHash: string }

/** The newest of the transactions that brought something, once it is final. */
async function arrivalAt(
  { arrivals }: SwapDeps,
  txs: ProviderStatus['destinationTxs'],
  where: { chainId: string; owner: string; token: string },
): Promise<Found | undefined> {
  for (const { chainId, txHash } of [...txs].reverse()) {
    if (chainId !== where.chainId) continue
    const arrival = await arrivals.of({ ...where, txHash })
    if (arrival?.isFinal && arrival.gained.length > 0) return { arrival, txHash }
  }
  return undefined
}

async function filled(deps: SwapDeps, task: SwapTask, status: ProviderStatus): Promise<Result | undefined> {
  const { data, userId } = task
  const { chain_id: chainId, account: owner, token } = data.destination
  const found = await arrivalAt(deps, status.destinationTxs, { chainId, owner, token: token.address })
  const chain = chainOf(deps, chainId)
  const gain = found?.arrival.gained.find((each) => sameAddress(chain, each.token, token.address))
  // Success was announced before its payment, or without one: the next answer says which.
  if (!found || !gain) return undefined
  deps.changed(userId, chainId)
  const isShort = gain.amountUnits < BigInt(data.amount_out_min)
  return {
    end: 'completed',
    outcome: isShort ? 'partial' : 'executed',
    data: {
      ...withArrival(deps, task, found, { chainId, change: changeView(chainId, token, gain.amountUnits) }),
      ...(isShort && { note: 'the provider filled less than the minimum' }),
    },
    result: {
      ...resultOf(data),
      amount_out: String(gain.amountUnits),
      tx_hash: found.txHash,
      explorer_url: `${chain.explorerUrl}/tx/${found.txHash}`,
      deposit_tx_hash: data.deposit_tx ?? null,
    },
  }
}

async function refunded(deps: SwapDeps, task: SwapTask, status: ProviderStatus): Promise<Result | undefined> {
  const { data, userId } = task
  const { chain_id: chainId, account: owner, token } = data.origin
  const refundToken = status.refund?.token ?? token.address
  const found = await arrivalAt(deps, status.destinationTxs, { chainId, owner, token: refundToken })
  if (!found) return undefined
  const chain = chainOf(deps, chainId)
  const gain =
    found.arrival.gained.find((each) => sameAddress(chain, each.token, refundToken)) ??
    found.arrival.gained[0]!
  deps.changed(userId, chainId)
  const isSame = sameAddress(chain, gain.token, token.address)
  const isWhole = isSame && gain.amountUnits >= BigInt(data.amount_in)
  const known = isSame
    ? token
    : [chain.native, ...chain.tokens].find((each) => sameAddress(chain, each.address, gain.token))
  const named = known ?? { symbol: '', name: '', decimals: 0, address: gain.token }
  return {
    end: 'failed',
    outcome: isWhole ? 'not_executed' : 'partial',
    error: errorOf({
      code: 'refunded',
      message: isWhole ? 'The deposit was refunded' : 'The deposit was refunded, less the cost of the refund',
      provider: data.provider,
      ...status,
    }),
    data: withArrival(deps, task, found, { chainId, change: changeView(chainId, named, gain.amountUnits) }),
    result: {
      ...resultOf(data),
      refunded: {
        chain_id: chainId,
        token_address: named.address,
        amount: String(gain.amountUnits),
        tx_hash: found.txHash,
      },
      failure_reason: failureReasonOf(status),
    },
  }
}

/** The deposit left the wallet and nothing came back: the result says where it is. */
function failed({ data }: SwapTask, status: ProviderStatus): Result {
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
  }
}

const chainOf = ({ chains }: SwapDeps, chainId: string) => {
  const chain = chains.find(({ id }) => id === chainId)
  if (!chain) throw new Fault('unavailable', `Chain ${chainId} is not served`)
  return chain
}

type Added = { chainId: string; change: JsonObject }

/** Adds the transaction of the provider and the change that it brought to those of the deposit. */
function withArrival(
  deps: SwapDeps,
  { data }: SwapTask,
  { arrival, txHash }: Found,
  { chainId, change }: Added,
): Partial<SwapTaskData> {
  const { explorerUrl } = chainOf(deps, chainId)
  const transaction: JsonObject = {
    chain_id: chainId,
    tx_hash: txHash,
    explorer_url: `${explorerUrl}/tx/${txHash}`,
    status: 'finalized',
    block: arrival.block,
  }
  return {
    transactions: [...(data.transactions ?? []), transaction],
    balance_changes: sumChanges([...(data.balance_changes ?? []), change]),
  }
}

/** One entry per chain and token; those that cancel each other out are left out. */
function sumChanges(changes: readonly JsonObject[]): JsonObject[] {
  const sums = new Map<string, JsonObject>()
  for (const each of changes) {
    const key = `${each.chain_id} ${each.token_address}`
    const before = BigInt(String(sums.get(key)?.amount ?? '0'))
    sums.set(key, { ...each, amount: String(before + BigInt(String(each.amount))) })
  }
  return [...sums.values()].filter(({ amount }) => amount !== '0')
}
