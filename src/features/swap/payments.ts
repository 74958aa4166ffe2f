import { claimArrival, unclaimed } from '#engines/chain-arrivals/claims.ts'
import { balanceChange, sumChanges } from '#kernel/balance-changes.ts'
import { type Chain, sameAddress, type Token } from '#kernel/chains.ts'
import { Fault } from '#kernel/fault.ts'
import type { JsonObject } from '#kernel/json.ts'
import { fullBps, mulDiv } from '#kernel/money.ts'
import type { ProviderStatus } from '#kernel/swap-provider.ts'
import type { Tx } from '#kernel/task.ts'
import { type Arrival, type Gain, isEarlier, paymentOf, type Range } from './arrivals.ts'
import type { SwapDeps } from './deps.ts'
import type { SwapTask, SwapTaskData } from './task-data.ts'

/** The payments of a provider to one swap, as the chains prove them. */

export type Found = { arrival: Arrival; gain: Gain; txHash: string }
export type Place = Range & {
  chain: Chain
  owner: string
  token: string
  task: SwapTask
  /** False: it came back. */
  isFill: boolean
  /** More is not attributed to one transaction where only the balances of its block show it. */
  unitsMax: bigint
}
/** What a payment may be made in: the first token of these that the transaction brought. */
type Wanted = { tokens: readonly string[] }

/** The newest of the payments since the swap began that is final, and that nothing else has counted. */
async function arrivalAt(
  { arrivals, db }: SwapDeps,
  txs: ProviderStatus['destinationTxs'],
  { chain, owner, token, task, unitsMax, ...range }: Place,
  { tokens }: Wanted,
): Promise<Found | undefined> {
  const head = task.data.heads?.[chain.id]
  const begin = { createdAt: task.createdAt, head }
  const receiver = { chain, account: owner, claimant: task.id }
  for (const { chainId, txHash } of [...txs].reverse()) {
    if (chainId !== chain.id) continue
    const arrival = await arrivals.of({ chainId, owner, token, unitsMax, txHash })
    if (!arrival?.isFinal || isEarlier(arrival, begin)) continue
    const gainsIn = (address: string) =>
      arrival.gained
        .filter((each) => sameAddress(chain, each.token, address))
        .map((each) => ({ ...each, txHash }))
    const gained = tokens.map(gainsIn).find(({ length }) => length > 0) ?? []
    const gain = paymentOf({ gained, free: await unclaimed(db, receiver, gained) }, range)
    if (gain) return { arrival, gain, txHash }
  }
  return undefined
}

export type Payment = { place: Place; found: Found }

async function paymentAt(
  deps: SwapDeps,
  { destinationTxs }: ProviderStatus,
  place: Place,
  wanted: Wanted,
): Promise<Payment | undefined> {
  const found = await arrivalAt(deps, destinationTxs, place, wanted)
  return found && { place, found }
}

/** The token that the swap asked for, on the chain where it asked for it. */
export function findFill(deps: SwapDeps, task: SwapTask, status: ProviderStatus) {
  const { data } = task
  const { chain_id: chainId, account: owner, token } = data.destination
  const range = { minUnits: BigInt(data.amount_out_min), maxUnits: fillMax(data) }
  const place = {
    ...range,
    chain: chainOf(deps, chainId),
    owner,
    token: token.address,
    task,
    isFill: true,
    unitsMax: betterFillMax(data),
  }
  return paymentAt(deps, status, place, { tokens: [token.address] })
}

/** What came back to the chain of the deposit, or else was paid as a refund on the other one. */
export async function findRefund(deps: SwapDeps, task: SwapTask, status: ProviderStatus) {
  const { origin, destination, amount_in } = task.data
  const back = await refundAt(deps, task, { status, end: origin, maxUnits: BigInt(amount_in) })
  if (back || destination.chain_id === origin.chain_id) return back
  return refundAt(deps, task, { status, end: destination, maxUnits: fillMax(task.data) })
}

type RefundSearch = { status: ProviderStatus; end: SwapTaskData['origin']; maxUnits: bigint }

function refundAt(deps: SwapDeps, task: SwapTask, { status, end, maxUnits }: RefundSearch) {
  const { chain_id: chainId, token, account: owner } = end
  const chain = chainOf(deps, chainId)
  const named = status.refund?.chainId === chainId ? status.refund.token : undefined
  const refundToken = named ?? token.address
  const range = { minUnits: 1n, maxUnits, unitsMax: maxUnits }
  const place = { ...range, chain, owner, token: refundToken, task, isFill: false }
  const tokens = [refundToken, ...knownOn(chain, token).map(({ address }) => address)]
  return paymentAt(deps, status, place, { tokens })
}

/** A listed token in place of the one that the swap asked for. */
export async function findOtherPayment(
  deps: SwapDeps,
  task: SwapTask,
  status: ProviderStatus & { paidToken: string },
): Promise<(Payment & { token: Token }) | undefined> {
  const { paidToken } = status
  const { chain_id: chainId, token, account: owner } = task.data.destination
  const chain = chainOf(deps, chainId)
  // Anybody can send tokens that are on no list. The worth of this one is not compared: it is not ours to judge.
  const known = knownOn(chain, token).find(({ address }) => sameAddress(chain, address, paidToken))
  if (!known || sameAddress(chain, paidToken, token.address)) return undefined
  const range = { minUnits: 0n, maxUnits: 0n, unitsMax: 0n }
  const place = { ...range, chain, owner, token: paidToken, task, isFill: false }
  const payment = await paymentAt(deps, status, place, { tokens: [paidToken] })
  return payment && { ...payment, token: known }
}

/** Counts the payment for its swap: it then ends no other one. */
export const claimPayment = (
  tx: Tx,
  { place: { chain, owner, task }, found: { txHash, gain } }: Payment,
  at: Date,
): Promise<void> =>
  claimArrival(tx, { chain, txHash, part: gain.part, account: owner }, { claimant: task.id, at })

const quotedOut = ({ quote, amount_out_min }: SwapTaskData): bigint =>
  BigInt(String(quote.amount_out ?? amount_out_min))

/** As far above the quote as the minimum is below it. */
const fillMax = (data: SwapTaskData): bigint => 2n * quotedOut(data) - BigInt(data.amount_out_min)

const betterFillBps = 200n
/**
 * A provider can pay more than a quote with a tight minimum. Of several payments in one transaction the range still
 * decides; two fills of one block, which balances cannot distinguish, are more than this together.
 */
function betterFillMax(data: SwapTaskData): bigint {
  const better = quotedOut(data) + mulDiv(quotedOut(data), betterFillBps, fullBps)
  const max = fillMax(data)
  return better > max ? better : max
}

const knownOn = (chain: Chain, token: Token): Token[] => [token, chain.native, ...chain.tokens]

export const chainOf = ({ chains }: SwapDeps, chainId: string) => {
  const chain = chains.find(({ id }) => id === chainId)
  if (!chain) throw new Fault('unavailable', `Chain ${chainId} is not served`)
  return chain
}

/** The token of a payment; only its address is known of one that is on no list. */
export const tokenOfPayment = ({ place: { chain }, found: { gain } }: Payment, token: Token): Token =>
  knownOn(chain, token).find((each) => sameAddress(chain, each.address, gain.token)) ?? {
    symbol: '',
    name: '',
    decimals: 0,
    address: gain.token,
  }

/** Adds the transaction of the provider and the change that it brought to those of the deposit. */
export function withPayment(
  { data }: SwapTask,
  { place: { chain }, found: { arrival, txHash, gain } }: Payment,
  token: Token,
): Pick<SwapTaskData, 'transactions' | 'balance_changes'> {
  const { id: chainId, explorerUrl } = chain
  const change = balanceChange(chainId, token, gain.amountUnits)
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
