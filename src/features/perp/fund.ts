import { venueDriver } from '#engines/venue/orders/venue-effect.ts'
import { registerFunded } from '#engines/venue/records/account-store.ts'
import { ledgerUpdateRows } from '#engines/venue/records/expected-balances.ts'
import { claimedByAnother, claimedTransferKeys, claimTransfer } from '#engines/venue/records/order-store.ts'
import { addLedgerEntries } from '#engines/venue/records/record-store.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { sameAddress } from '#kernel/money/chains.ts'
import { fromUnits, usdcDecimals, usdDecimals } from '#kernel/money/money.ts'
import { addToResult, createEffect } from '#kernel/task/effect-steps.ts'
import { pollAgain, pollsOf } from '#kernel/task/poll-again.ts'
import type { EndResult, StepResultOf, Steps, TaskView, Tx } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { TransferLog } from '#upstreams/evm/token-calls.ts'
import type { LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { checkForCredit } from './deposit-credit.ts'
import { type FundDeps, type FundTaskData, fundFacts } from './fund-admission.ts'
import { approvalPlan, approvalSearch, recordApproval } from './setup.ts'
import {
  afterSwapStep,
  creditedLegs,
  depositHold,
  type FundStep,
  type FundTask,
  swapBeforeDepositSteps,
} from './swap-before-deposit.ts'
import { swapFeesUsd } from './swap-leg.ts'

/** This module deposits USDC over the venue's bridge, waits for the credit of that transfer, and approves the key. */

const pollBackoff = { firstMs: 300, maxMs: 5_000 }
/** A credit can take minutes; after this time the task needs review. */
const reviewAfterMs = 60 * 60_000

type FoundCredit = { key: string; update: LedgerUpdate }

export function fundSteps(deps: FundDeps): Steps<FundTaskData, FundStep> {
  const transfer = transferEffect(deps)
  const approval = approvalEffect(deps)
  return {
    ...swapBeforeDepositSteps(deps),
    sign: afterSwapStep(deps, transfer.sign),
    confirm: afterSwapStep(deps, transfer.confirm),
    async credit(task, context) {
      const { isNew, data } = await checkForCredit(deps.venue, task.data, pollsOf(task))
      const found = isNew ? await creditOf(deps, task) : undefined
      if (!found) return waitForTransfer(task, context.now, 'credit', data)
      const credited_at = new Date(found.update.atMs).toISOString()
      const credited = { ...task, data: { ...task.data, credited_at } }
      return addToResult(await approval.sign(credited, context), {
        data: { credited_at },
        writes: (tx) => claimCredit(tx, task, found, context.now),
      })
    },
    approve: approval.sign,
    approved: approval.confirm,
  }
}

/** Proves the deposit by its transfer event, which alone shows that it was sent. */
export const depositProof = (
  { chain, route }: FundDeps,
  { account, amount_units }: Pick<FundTaskData, 'account' | 'amount_units'>,
  receipt: Receipt,
): Receipt | undefined => {
  const isDeposit = ({ token, from, to, amountUnits }: TransferLog) =>
    sameAddress(chain.row, token, route.token) &&
    sameAddress(chain.row, from, account) &&
    sameAddress(chain.row, to, route.bridge) &&
    amountUnits === BigInt(amount_units)
  return chain.transfers(receipt).some(isDeposit) ? receipt : undefined
}

const transferEffect = (deps: FundDeps) => {
  const { batches, route, transferCall, changed } = deps
  return createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: batches.driver<FundTaskData, Receipt, FundStep>({
      onFinal: ({ userId }) => changed(userId, route.chainId),
      prove: ({ data }, receipt) => depositProof(deps, data, receipt),
      // The credit followed a deposit that was found on the chain, so the credit may be older than the task.
      async found({ data }, { receipt }) {
        const proof = depositProof(deps, data, receipt)
        const { timestampSeconds } = await deps.chain.headAt(receipt.block)
        return proof && { proof, data: { since_ms: Math.min(data.since_ms, timestampSeconds * 1_000) } }
      },
    }),
    plan({ data: { account, amount_units } }) {
      const amountUnits = BigInt(amount_units)
      return {
        ...fundFacts(route, amountUnits),
        account,
        calls: [transferCall(route.token, route.bridge, amountUnits)],
        spends: [{ token: route.token, amountUnits, spender: route.bridge }],
      }
    },
    settle: ({ id, data: { amount_units, swapped, is_deposited: isDeposited } }, { txHash }) => ({
      next: 'credit',
      state: 'waiting',
      // After a swap, which spent the task's own hold, the deposit has a separate hold.
      ...(swapped
        ? !isDeposited && {
            moves: [{ move: 'post', key: depositHold(id), amountUnits: BigInt(amount_units) }],
          }
        : { spent: BigInt(amount_units) }),
      data: { tx_hash: txHash, polls: 0 },
    }),
  })
}

async function creditOf({ db, venue }: FundDeps, task: FundTask): Promise<FoundCredit | undefined> {
  const { account, since_ms, amount_units } = task.data
  const wanted = fromUnits(BigInt(amount_units), usdDecimals)
  const updates = (await venue.ledgerSince(account, since_ms))
    .filter(
      ({ type, amountUsd }) =>
        type === 'deposit' && amountUsd !== null && compareDecimals(amountUsd, wanted) === 0,
    )
    .map((update) => ({ key: `deposit:${account}:${update.atMs}:${update.hash}`, update }))
  const taken = await claimedTransferKeys(
    db,
    updates.map(({ key }) => key),
    task.id,
  )
  return updates.find(({ key }) => !taken.has(key))
}

async function claimCredit(tx: Tx, { id, userId, data }: FundTask, { key, update }: FoundCredit, now: Date) {
  if (!(await claimTransfer(tx, { key, userId, taskId: id, at: now }))) throw claimedByAnother('credit')
  if (!data.is_first) return
  // The account is registered in this commit, so that its record contains every fill from the first one on.
  await registerFunded(tx, { userId, account: data.account, now })
  await addLedgerEntries(tx, { user_id: userId }, ledgerUpdateRows(update))
}

export function creditedEnd(
  deps: Pick<FundDeps, 'route'>,
  data: FundTaskData,
): EndResult<Record<never, never>> & { end: 'completed' } {
  const { amount_units, tx_hash = '', source_token, credited_at = '', swapped } = data
  return {
    end: 'completed',
    outcome: 'executed',
    result: {
      amount: amount_units,
      amount_usd: fromUnits(BigInt(amount_units), usdcDecimals),
      fee_usd: swapFeesUsd(data),
      chain_id: deps.route.chainId,
      token_address: deps.route.token,
      tx_hash,
      credited_at,
      ...(source_token !== undefined && { source_token }),
      ...(swapped && { legs: creditedLegs(deps, data), remaining: null }),
    },
  }
}

/** A deposit is complete even if the approval fails, because the set-up can approve the key later. */
function approvalEffect(deps: FundDeps) {
  const { tradingKeys } = deps
  const credited = ({ data }: FundTask) => creditedEnd(deps, data)
  return createEffect({
    steps: { sign: 'approve', confirm: 'approved' },
    driver: venueDriver<FundTaskData, { validUntilMs: number }, FundStep>(deps, {
      actionKey: 'agent',
      search: approvalSearch(deps),
      onRejected: credited,
    }),
    async plan(task, { now }) {
      const { waiting } = await tradingKeys.of(task.userId)
      if (!waiting) return credited(task)
      return {
        ...approvalPlan(task.data, { agent: waiting.address, operation: 'perp_fund', now }),
        onRefused: () => credited(task),
      }
    },
    settle: (task, proof, { now }) => ({
      ...credited(task),
      writes: recordApproval(deps, task, { ...proof, now }),
    }),
  })
}

/** Polls again for a sent transfer, and never fails its task; after a long wait the task goes to review. */
export function waitForTransfer<Name extends string, Data = unknown>(
  task: TaskView<{ polls?: number }>,
  now: Date,
  next: Name,
  data?: Data,
): StepResultOf<{ polls: number } | (Data & { polls: number }), Name> {
  const { park, data: counted } = pollAgain(task, next, pollBackoff)
  const isLate = now.getTime() - task.createdAt.getTime() > reviewAfterMs
  return {
    park: { afterMs: isLate ? 12 * pollBackoff.maxMs : park.afterMs, next },
    ...(isLate ? { state: 'review', outcome: 'unknown' } : { state: 'waiting' }),
    data: { ...data, ...counted },
  }
}
