import { unclaimed, venuePayouts } from '#engines/chain-arrivals/claims.ts'
import { type ActionTaskData, effectOf } from '#engines/venue/orders/action-outcome.ts'
import { recordsDisagree } from '#engines/venue/records/cash-reconciliation.ts'
import { claimedTransferKeys } from '#engines/venue/records/order-store.ts'
import { toUnits, usdcDecimals } from '#kernel/money/money.ts'
import { pollsOf } from '#kernel/task/poll-again.ts'
import type { JsonObject, TaskView } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm, IncomingTransfer } from '#upstreams/evm/evm.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { FundingRoute } from './funding-route.ts'
import type { PerpLimits } from './limits.ts'

/** This module finds the bridge's payout of a withdrawal, in the venue's record and on the chain. */

export type Payout = { paid_units: string }
type PayoutDeps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'ledgerSince'>
  chain: Pick<Evm, 'row' | 'head' | 'incomingTransfers'>
  route: FundingRoute
  limits: Pick<PerpLimits, 'withdrawFeeUsd'>
}
export type PayoutTaskData = ActionTaskData & {
  account: string
  amount_usd: string
  since_ms: number
  from_block: string
}

/** While the chain shows a possible payout, the venue's transfer list is read once in this many polls. */
const repollAfter = 6
/**
 * While the chain shows no payout, the list is read once in this many polls, because a node may lack the logs of some
 * blocks.
 */
const unseenRepollAfter = 24
/** An arrival that falls short of the amount by more than this many fees is not the payout. */
const feeMultipleMax = 5n

export const isPaid =
  ({ paid_units }: Payout) =>
  (amountUnits: bigint) =>
    amountUnits === BigInt(paid_units)

/** Matches any amount up to the withdrawn one, because the fee of the payout is unknown. */
const isUpTo =
  (maxUnits: bigint) =>
  (amountUnits: bigint): boolean =>
    amountUnits > 0n && amountUnits <= maxUnits

/** Matches amounts that the venue may have paid out; dust from third parties is no payout. */
export const isNear = (
  { amount_usd }: Pick<PayoutTaskData, 'amount_usd'>,
  { withdrawFeeUsd }: Pick<PerpLimits, 'withdrawFeeUsd'>,
) => {
  const upperUnits = toUnits(amount_usd, usdcDecimals)
  const lowerUnits = upperUnits - feeMultipleMax * toUnits(withdrawFeeUsd, usdcDecimals)
  return (amountUnits: bigint) => amountUnits > 0n && amountUnits >= lowerUnits && amountUnits <= upperUnits
}

export type FoundPayout = { key: string; arrival: IncomingTransfer }
export type PayoutSearch = ReturnType<typeof createPayoutSearch>

export function createPayoutSearch({ db, venue, chain, route, limits }: PayoutDeps) {
  const arrivalOf = async (
    task: TaskView<PayoutTaskData>,
    blocks: { from: bigint; to: bigint },
    isPayout: (amountUnits: bigint) => boolean,
  ): Promise<{ found: FoundPayout | undefined; searchedTo: bigint }> => {
    const { transfers, searchedTo } = await chain.incomingTransfers(route.token, task.data.account, blocks)
    const fitting = transfers
      .filter(({ amountUnits }) => isPayout(amountUnits))
      .map((arrival) => ({ key: `arrival:${arrival.txHash}:${arrival.index}`, arrival }))
    const taken = await claimedTransferKeys(
      db,
      fitting.map(({ key }) => key),
      task.id,
    )
    const { account } = task.data
    const [found] = await unclaimed(
      db,
      { chain: chain.row, account, claimant: venuePayouts },
      fitting
        .filter(({ key }) => !taken.has(key))
        .map((each) => ({ ...each, txHash: each.arrival.txHash, part: String(each.arrival.index) })),
    )
    return { found, searchedTo }
  }

  /** Throws if the chain shows a possible payout that the venue's list does not contain. */
  const assertNotArrived = async (task: TaskView<PayoutTaskData>): Promise<void> => {
    const { from_block } = task.data
    const { number: head } = await chain.head()
    for (let from = BigInt(from_block); from <= head; ) {
      const { found, searchedTo } = await arrivalOf(task, { from, to: head }, isNear(task.data, limits))
      if (found)
        throw recordsDisagree(
          'the withdrawn amount arrived in the wallet, but the list does not contain the withdrawal',
        )
      from = searchedTo + 1n
    }
  }

  const ownIn = (
    task: TaskView<PayoutTaskData>,
    updates: readonly LedgerUpdate[],
  ): LedgerUpdate | undefined => {
    const nonce = Number(effectOf(task, 'withdraw').txAttempts.at(-1)?.nonce)
    return updates.find((update) => update.type === 'withdraw' && update.nonce === nonce)
  }

  /** Reads the payout from the venue's record, because the venue sets the fee. */
  const payoutOf = async (task: TaskView<PayoutTaskData>): Promise<Payout | undefined> => {
    const { account, since_ms } = task.data
    const own = ownIn(task, await venue.ledgerSince(account, since_ms))
    const paidUsd = own?.amountUsd ?? null
    return paidUsd === null ? undefined : { paid_units: String(toUnits(paidUsd, usdcDecimals)) }
  }

  return { arrivalOf, assertNotArrived, ownIn, payoutOf }
}

type SearchProgress = { from_block: string; payout?: Payout; payout_read_poll?: number }
type SearchTask = TaskView<PayoutTaskData & SearchProgress & { first_block: string; polls?: number }>

/**
 * The venue lists the withdrawal only after the payout, minutes later, and the list costs request budget. It is
 * therefore read once the chain shows a possible payout, and again with the next poll if it is still behind.
 */
export async function findPayout(
  { chain }: Pick<PayoutDeps, 'chain'>,
  { arrivalOf, payoutOf }: PayoutSearch,
  task: SearchTask,
): Promise<{ found?: FoundPayout; data?: Partial<SearchProgress> }> {
  const { amount_usd, first_block, from_block, payout: known } = task.data
  const from = BigInt(from_block)
  const { number: to } = await chain.head()
  if (to < from) return {}
  const upperUnits = toUnits(amount_usd, usdcDecimals)
  const near = await arrivalOf(task, { from, to }, known ? isPaid(known) : isUpTo(upperUnits))
  const polls = pollsOf(task)
  let payout = known
  let { payout_read_poll } = task.data
  const isReadDue = isListReadDue(near, polls, payout_read_poll)
  if (!known && near.found && !isReadDue) return {}
  if (!known && isReadDue) {
    payout = await payoutOf(task)
    payout_read_poll = payout_read_poll === undefined ? polls + 1 - repollAfter : polls
    if (!payout && near.found) return { data: { payout_read_poll } }
  }
  const { found, searchedTo } = payout && !known ? await arrivalOf(task, { from, to }, isPaid(payout)) : near
  if (found) return { found }
  // The payout has been made, so a search that reached the head without it has missed it.
  const isMissed = payout && searchedTo >= to && (!known || polls % repollAfter === 0)
  const next = nextBlock(from, searchedTo, chain.row.confirmations)
  const data = {
    from_block: isMissed ? first_block : String(next),
    ...(payout_read_poll !== undefined && { payout_read_poll }),
    ...(payout && { payout }),
  }
  return { data }
}

/** The venue lists a withdrawal late, so its list is read often only once the chain shows a possible payout. */
function isListReadDue(
  { found }: { found?: unknown },
  polls: number,
  lastRead = found ? -repollAfter : 0,
): boolean {
  return polls - lastRead >= (found ? repollAfter : unseenRepollAfter)
}

/** The last blocks are searched again, because a reorganised block may contain the payout. */
function nextBlock(from: bigint, searchedTo: bigint, confirmations: number): bigint {
  const searched = searchedTo - BigInt(confirmations)
  return searched >= from ? searched + 1n : from
}

export const arrivedView = (route: FundingRoute, units: string): JsonObject => ({
  chain_id: route.chainId,
  token_address: route.token,
  symbol: route.symbol,
  amount: units,
  decimals: usdcDecimals,
})
