import { knownUnified } from '#engines/venue/records/account-mode.ts'
import { type CashSource, reconciledTransfers } from '#engines/venue/records/cash-reconciliation.ts'
import { spotBalanceKey } from '#engines/venue/records/expected-balances.ts'
import { claimedTransferKeys, claimTransfer } from '#engines/venue/records/store.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { sha256 } from '#kernel/id.ts'
import { fromUnits, toMicros, toUnits, usdDecimals } from '#kernel/money.ts'
import type { StepContext, StepResultOf, TaskView, Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { SpendingTaskData, TransferTaskData } from './order-task.ts'
import type { ActionOutcome, ActionPlan, SignedActions, SignedResult } from './signed-action.ts'
import { notePaid, type PendingSpend, type Spendings } from './spending.ts'

/** Transfers USDC between the spot and perp sides of an account, as a step of the task that needs it. */

const actionKey = 'transfer'

export type Shortfall = { shortfallMicros: bigint; spareMicros?: bigint }
export type TransferAmount = Required<Pick<TransferTaskData, 'transfer_usd' | 'transfer_jitter_micros'>>
/** For an account with one balance for both sides. */
export const noTransfer: TransferAmount = { transfer_usd: null, transfer_jitter_micros: '0' }

/** A transfer is identified by its amount only, so each task varies the amount. */
const jitterMaxMicros = 10_000n

/** The shortfall plus the spare as far as funds allow; null where the other side cannot cover the shortfall. */
function transferAmount(
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

/** The amount to transfer from the free USDC of the spot side; null where it cannot cover the shortfall. */
export const transferable = (freeMicros: bigint, shortfall: Shortfall): TransferAmount | null =>
  transferAmount(freeMicros, shortfall)

/** The same from the withdrawable USDC of the perp side; no transfer where one balance serves both sides. */
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
    transfer: transferAmount(otherMicros - pendingSpend.amount, shortfall) ?? undefined,
    otherMicros,
    pendingSpend,
  }
}

type FoundTransfer = { key: string; atMs: number }

type CollateralTransferDeps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'ledgerSince' | 'spotBalances'> & CashSource
  signedActions: SignedActions
  /** The side that receives the funds. */
  to: 'perp' | 'spot'
}

const otherSide = { perp: 'spot', spot: 'perp' } as const

export type CollateralTransfer = {
  sign(
    task: TaskView<TransferTaskData>,
    context: StepContext,
    facts: Pick<ActionPlan['facts'], 'operation' | 'exit'>,
    refused: (fault: Fault) => StepResultOf<Partial<TransferTaskData>, 'transferred'>,
  ): Promise<SignedResult<TransferTaskData, 'transferred'>>
  confirm(task: TaskView<TransferTaskData>, context: StepContext): Promise<ActionOutcome<FoundTransfer>>
  /** The next step result; its commit claims the transfer for this task. */
  recordTransfer<Data extends TransferTaskData, Name extends string>(
    task: TaskView<Data>,
    context: StepContext,
    found: FoundTransfer,
    nextResult: StepResultOf<Partial<Data>, Name>,
  ): StepResultOf<Partial<Data> | (Partial<Data> & SpendingTaskData), Name>
}

export const createCollateralTransfer = ({
  db,
  venue,
  signedActions,
  to,
}: CollateralTransferDeps): CollateralTransfer => ({
  async sign(task, { now }, { operation, exit }, onRefused) {
    const taskData = task.data
    const { account, ahead_ms: aheadMs } = taskData
    const amount = transferAmountOf(task.id, taskData)
    const plan: ActionPlan = {
      actionKey,
      account,
      agent: account,
      skewMs: aheadMs,
      ttlMs: 0,
      facts: { operation, exit, tokens: ['USDC'], recipients: [], usdMicros: 0n },
      action: { type: 'move_cash', amount, to },
    }
    const progress = { step: 1, of: 2, text: `Moving ${amount} USDC from the ${otherSide[to]} side` }
    // Replace the range by the exact amount of this transfer.
    const usdc = (await venue.spotBalances(account, ['USDC'])).find(({ coin }) => coin === 'USDC')
    const data = {
      progress,
      transfer_usd: amount,
      transfer_jitter_micros: '0',
      spot_before: usdc?.total ?? '0',
    }
    return signedActions.sign(task, plan, { now, next: 'transferred', data, onRefused })
  },

  confirm: (task, { signal }) => {
    const { account, since_ms: sinceMs, transfer_usd: amount, spot_before: total = '0' } = task.data
    const ownOf = async (updates: LedgerUpdate[]): Promise<FoundTransfer | undefined> => {
      const transfers = updates
        .filter(({ type, toPerp }) => type === 'accountClassTransfer' && toPerp === (to === 'perp'))
        .filter(({ amountUsd }) => amountUsd !== null && compareDecimals(amountUsd, amount ?? '0') === 0)
        .map(({ atMs, hash }) => ({ key: `transfer:${account}:${atMs}:${hash}`, atMs }))
      const taken = await claimedTransferKeys(
        db,
        transfers.map(({ key }) => key),
        task.id,
      )
      return transfers.find(({ key }) => !taken.has(key))
    }
    return signedActions.confirm<FoundTransfer>({
      task,
      actionKey,
      signal,
      parseReply: () => undefined,
      async lookUp({ isLast }) {
        const own = await ownOf(await venue.ledgerSince(account, sinceMs))
        if (own || !isLast) return own
        // The list that matches the balance may be newer than the one above.
        return ownOf(
          await reconciledTransfers(venue, account, { balanceKey: spotBalanceKey('USDC'), total, sinceMs }),
        )
      },
    })
  },

  recordTransfer: (task, { now }, { key, atMs }, nextResult) => {
    const { transfer_usd: amount, spot_before: before } = task.data
    const side = to === 'perp' ? 'spot' : 'perp'
    const paid = notePaid(task, { side, amount: amount ?? '0', ...(before && { before }), atMs, now })
    return {
      ...nextResult,
      data: Object.assign({}, nextResult.data, paid),
      async writes(tx: Tx) {
        const mine = await claimTransfer(tx, { key, userId: task.userId, taskId: task.id, at: now })
        if (!mine) throw new Fault('unavailable', 'The transfer was claimed by another task')
      },
    }
  },
})
