import { type ActionTaskData, effectOf } from '#engines/venue/orders/signed-action.ts'
import { recordsDisagree } from '#engines/venue/records/cash-reconciliation.ts'
import { claimedTransferKeys } from '#engines/venue/records/store.ts'
import { toUnits, usdcDecimals } from '#kernel/money.ts'
import type { TaskView } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm, IncomingTransfer } from '#upstreams/evm/evm.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { FundingRoute, PerpLimits } from './limits.ts'

/** The bridge's payout of a withdrawal: the venue's record of it, and its arrival on the chain. */

export type Payout = { paid_units: string }
type PayoutDeps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'ledgerSince'>
  chain: Pick<Evm, 'head' | 'incomingTransfers'>
  route: FundingRoute
  limits: Pick<PerpLimits, 'withdrawFeeUsd'>
}
type PayoutTaskData = ActionTaskData & {
  account: string
  amount_usd: string
  since_ms: number
  from_block: string
}

/** An arrival that is smaller by more than this many fees is not the payout. */
const feeMultipleMax = 5n

export const isPaid =
  ({ paid_units }: Payout) =>
  (amountUnits: bigint) =>
    amountUnits === BigInt(paid_units)

/** Matches a payout with any fee. */
export const isUpTo =
  (maxUnits: bigint) =>
  (amountUnits: bigint): boolean =>
    amountUnits > 0n && amountUnits <= maxUnits

export function createPayoutSearch({ db, venue, chain, route, limits }: PayoutDeps) {
  const arrivalOf = async (
    task: TaskView<PayoutTaskData>,
    blocks: { from: bigint; to: bigint },
    isPayout: (amountUnits: bigint) => boolean,
  ): Promise<{ found: { key: string; arrival: IncomingTransfer } | undefined; searchedTo: bigint }> => {
    const { transfers, searchedTo } = await chain.incomingTransfers(route.token, task.data.account, blocks)
    const fitting = transfers
      .filter(({ amountUnits }) => isPayout(amountUnits))
      .map((arrival) => ({ key: `arrival:${arrival.txHash}:${arrival.index}`, arrival }))
    const taken = await claimedTransferKeys(
      db,
      fitting.map(({ key }) => key),
      task.id,
    )
    return { found: fitting.find(({ key }) => !taken.has(key)), searchedTo }
  }

  const mayBePayout = (task: TaskView<PayoutTaskData>) => {
    const upperUnits = toUnits(task.data.amount_usd, usdcDecimals)
    const lowerUnits = upperUnits - feeMultipleMax * toUnits(limits.withdrawFeeUsd, usdcDecimals)
    // Dust from third parties is not a payout.
    return (amountUnits: bigint) => amountUnits > 0n && amountUnits >= lowerUnits && amountUnits <= upperUnits
  }

  /** Throws where the chain shows a possible payout that the venue's list does not contain. */
  const assertNotArrived = async (task: TaskView<PayoutTaskData>): Promise<void> => {
    const { from_block } = task.data
    const { number: head } = await chain.head()
    for (let from = BigInt(from_block); from <= head; ) {
      const { found, searchedTo } = await arrivalOf(task, { from, to: head }, mayBePayout(task))
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

  /** From the venue's record, because the venue sets the fee. */
  const payoutOf = async (task: TaskView<PayoutTaskData>): Promise<Payout | undefined> => {
    const { account, since_ms } = task.data
    const own = ownIn(task, await venue.ledgerSince(account, since_ms))
    const paidUsd = own?.amountUsd ?? null
    return paidUsd === null ? undefined : { paid_units: String(toUnits(paidUsd, usdcDecimals)) }
  }

  return { arrivalOf, assertNotArrived, ownIn, payoutOf }
}
