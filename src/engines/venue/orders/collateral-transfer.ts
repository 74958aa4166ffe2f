import { knownUnified } from '#engines/venue/records/account-mode.ts'
import { type CashSource, reconciledTransfers } from '#engines/venue/records/cash-reconciliation.ts'
import { spotBalanceKey } from '#engines/venue/records/expected-balances.ts'
import { claimedByAnother, claimedTransferKeys, claimTransfer } from '#engines/venue/records/order-store.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { sha256 } from '#kernel/id.ts'
import { fromUnits, toMicros, toUnits, usdDecimals } from '#kernel/money/money.ts'
import {
  addToResult,
  createEffect,
  type EffectNames,
  type EffectStep,
  type EffectSteps,
} from '#kernel/task/effect-steps.ts'
import type { TaskView } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { TransferTaskData } from './order-task.ts'
import { notePaid, type PendingSpend, type Spendings } from './pending-spends.ts'
import type { ActionPlan } from './signed-action.ts'
import {
  type ActionSearch,
  type VenueAction,
  type VenueDriverDeps,
  type VenuePlan,
  venueDriver,
} from './venue-effect.ts'

/** Transfers USDC between the spot and perp sides of an account, as an effect of the task that needs it. */

const actionKey = 'transfer'

export type Shortfall = { shortfallMicros: bigint; spareMicros?: bigint }
export type TransferAmount = Required<Pick<TransferTaskData, 'transfer_usd' | 'transfer_jitter_micros'>>
/** An account with one balance for both sides needs no transfer. */
export const noTransfer: TransferAmount = { transfer_usd: null, transfer_jitter_micros: '0' }

/** The venue's list identifies a transfer by its amount alone, so each task varies it by up to this much. */
const jitterMaxMicros = 10_000n

/** Returns the shortfall and a margin for fees, cut to the free funds; null if these do not cover the shortfall. */
export function transferable(
  freeMicros: bigint,
  { shortfallMicros, spareMicros = jitterMaxMicros }: Shortfall,
): TransferAmount | null {
  if (freeMicros < shortfallMicros) return null
  const wanted = shortfallMicros + spareMicros
  const upperMicros = wanted < freeMicros ? wanted : freeMicros
  // The jitter uses at most half of the spare; the rest covers fees.
  const half = (upperMicros - shortfallMicros) / 2n
  const jitter = half < jitterMaxMicros ? half : jitterMaxMicros
  return { transfer_usd: fromUnits(upperMicros, usdDecimals), transfer_jitter_micros: String(jitter) }
}

function transferAmountOf(taskId: string, taskData: TransferTaskData): string {
  const { transfer_usd, transfer_jitter_micros = '0' } = taskData
  const upperMicros = toUnits(transfer_usd ?? '0', usdDecimals)
  const share = BigInt(`0x${sha256(`${taskId}:${actionKey}`).slice(0, 12)}`)
  return fromUnits(upperMicros - (share % (BigInt(transfer_jitter_micros) + 1n)), usdDecimals)
}

/** Returns the transfer from the perp side that covers a shortfall, or none if one balance serves both sides. */
export async function transferableFromPerp(
  venue: Pick<Hyperliquid, 'account' | 'accountMode'>,
  account: string,
  shortfall: Shortfall,
  spendings: Spendings,
): Promise<{ transfer: TransferAmount | undefined; otherMicros: bigint; pendingSpend: PendingSpend }> {
  const [state, mode] = await Promise.all([venue.account(account), venue.accountMode(account)])
  const pendingSpend = spendings.perpCash(state)
  if (knownUnified(mode)) return { transfer: undefined, otherMicros: 0n, pendingSpend }
  const otherMicros = toMicros(state.withdrawableUsd)
  return {
    transfer: transferable(otherMicros - pendingSpend.amount, shortfall) ?? undefined,
    otherMicros,
    pendingSpend,
  }
}

type FoundTransfer = { key: string; atMs: number }

type TransferDeps = VenueDriverDeps & {
  db: Queryable
  venue: Pick<Hyperliquid, 'ledgerSince' | 'spotBalances'> & CashSource
}
type Side = 'perp' | 'spot'

type TransferRules<Data extends TransferTaskData, Names extends string> = {
  steps: EffectNames<Names>
  /** Returns the operation that needs the funds, and the side that receives them. */
  purpose(data: Data): Pick<ActionPlan['facts'], 'operation' | 'exit'> & { to: Side }
  /** The signing step that follows the transfer, or that takes its place if no transfer is needed. */
  next: EffectStep<Data, Names>
  onRejected?: VenueAction<Data, FoundTransfer, Names>['onRejected']
}

const otherSide = { perp: 'spot', spot: 'perp' } as const

/**
 * Builds the steps of the transfer. The commit that follows the transfer claims the transfer for this task, even if the
 * next signature is refused.
 */
export const transferEffect = <Data extends TransferTaskData & { agent?: string }, Names extends string>(
  deps: TransferDeps,
  { steps, purpose, next, onRejected }: TransferRules<Data, Names>,
): EffectSteps<Data, Names> =>
  createEffect({
    steps,
    driver: venueDriver<Data, FoundTransfer, Names>(deps, {
      actionKey,
      search: (task) => transferSearch(deps, task, purpose(task.data).to),
      ...(onRejected && { onRejected }),
    }),
    async plan(
      task,
      context,
    ): Promise<VenuePlan<Data, Names> | Awaited<ReturnType<EffectStep<Data, Names>>>> {
      if (task.data.transfer_usd === null) return next(task, context)
      const { account, ahead_ms: skewMs } = task.data
      const { to, ...facts } = purpose(task.data)
      const amount = transferAmountOf(task.id, task.data)
      const usdc = (await deps.venue.spotBalances(account, ['USDC'])).find(({ coin }) => coin === 'USDC')
      // From the signature on, `transfer_usd` is the exact amount, without a range.
      const data: Partial<TransferTaskData> = {
        progress: { step: 1, of: 2, text: `Moving ${amount} USDC from the ${otherSide[to]} side` },
        transfer_usd: amount,
        transfer_jitter_micros: '0',
        spot_before: usdc?.total ?? '0',
      }
      return {
        account,
        agent: account,
        skewMs,
        ttlMs: 0,
        facts: { ...facts, tokens: ['USDC'], recipients: [], usdMicros: 0n },
        action: { type: 'move_cash', amount, to },
        data: data as Partial<Data>,
      }
    },
    async settle(task, { key, atMs }, context) {
      const { transfer_usd, spot_before: before } = task.data
      const side = otherSide[purpose(task.data).to]
      const paid = { side, amount: transfer_usd ?? '0', ...(before && { before }), atMs, now: context.now }
      return addToResult(await next(task, context), {
        data: notePaid(task, paid) as Partial<Data>,
        async writes(tx) {
          const claim = { key, userId: task.userId, taskId: task.id, at: context.now }
          if (!(await claimTransfer(tx, claim))) throw claimedByAnother('transfer')
        },
      })
    },
  })

function transferSearch(
  { db, venue }: TransferDeps,
  { id, data }: TaskView<TransferTaskData>,
  to: Side,
): ActionSearch<FoundTransfer> {
  const { account, since_ms: sinceMs, transfer_usd: amount, spot_before: total = '0' } = data
  const ownOf = async (updates: LedgerUpdate[]): Promise<FoundTransfer | undefined> => {
    const transfers = updates
      .filter(({ type, toPerp }) => type === 'accountClassTransfer' && toPerp === (to === 'perp'))
      .filter(({ amountUsd }) => amountUsd !== null && compareDecimals(amountUsd, amount ?? '0') === 0)
      .map(({ atMs, hash }) => ({ key: `transfer:${account}:${atMs}:${hash}`, atMs }))
    const keys = transfers.map(({ key }) => key)
    const taken = await claimedTransferKeys(db, keys, id)
    return transfers.find(({ key }) => !taken.has(key))
  }
  return {
    parseReply: () => undefined,
    async lookUp({ isLast }) {
      const own = await ownOf(await venue.ledgerSince(account, sinceMs))
      if (own || !isLast) return own
      // The list that matches the balance may be newer than the list above.
      const balance = { balanceKey: spotBalanceKey('USDC'), total, sinceMs }
      return ownOf(await reconciledTransfers(venue, account, balance))
    },
  }
}
