import { claimArrival, venuePayouts } from '#engines/chain-arrivals/claims.ts'
import type { NotExecutedOutcome } from '#engines/venue/orders/action-outcome.ts'
import { collateralFor, transferFor } from '#engines/venue/orders/collateral-shortfall.ts'
import { noTransfer, transferEffect } from '#engines/venue/orders/collateral-transfer.ts'
import { failed } from '#engines/venue/orders/order-failures.ts'
import { clockSkewMs, type TransferTaskData } from '#engines/venue/orders/order-task.ts'
import { noteErrorMs, notePaid, recentSpendings } from '#engines/venue/orders/pending-spends.ts'
import { rereadBalances } from '#engines/venue/orders/read-after-write.ts'
import { type AgentDeps, venueForExit } from '#engines/venue/orders/require-trading-key.ts'
import type { ActionPlan } from '#engines/venue/orders/signed-action.ts'
import { type VenueDriverDeps, venueDriver } from '#engines/venue/orders/venue-effect.ts'
import type { CashSource } from '#engines/venue/records/cash-reconciliation.ts'
import { claimedByAnother, claimTransfer } from '#engines/venue/records/order-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { invalid } from '#kernel/contract/fault.ts'
import { fromUnits, toUnits, usdcDecimals, usdDecimals } from '#kernel/money/money.ts'
import { type BalanceAttempt, createAdmission } from '#kernel/task/admission.ts'
import { createEffect } from '#kernel/task/effect-steps.ts'
import type { PlannedAction, Policy } from '#kernel/task/signer.ts'
import type { StepResult, Steps, TaskView, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpInput } from './contract.ts'
import { withdrawnBefore } from './forgotten-withdrawal.ts'
import { waitForTransfer } from './fund.ts'
import { type FundingRoute, isBridgeToken } from './funding-route.ts'
import type { PerpLimits } from './limits.ts'
import {
  type Destination,
  prepareLeg,
  type SwapAfterData,
  type SwapAfterDeps,
  type SwapAfterStep,
  swapAfterWithdrawal,
  swapNext,
} from './withdraw-swap.ts'
import {
  arrivedView,
  createPayoutSearch,
  type FoundPayout,
  findPayout,
  type Payout,
} from './withdrawal-payout-search.ts'
import { withdrawalSearch } from './withdrawal-search.ts'

/** This module withdraws collateral to the wallet: the venue debits it at once, and its bridge pays it out later. */

export type WithdrawDeps = VenueDriverDeps & {
  db: Queryable
  venue: Pick<Hyperliquid, 'account' | 'ledgerSince' | 'spotBalances' | 'accountMode' | 'withUrgency'> &
    CashSource
  chain: Pick<Evm, 'head' | 'incomingTransfers' | 'row'>
  policy: Pick<Policy, 'check'>
  tradingKeys: AgentDeps['tradingKeys']
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  route: FundingRoute
  chainId: string
  clock: Clock
  limits: PerpLimits
} & SwapAfterDeps
type WithdrawInput = PerpInput<'withdraw'>
type WithdrawTaskData = TransferTaskData &
  SwapAfterData & {
    /** The payout as the venue's record names it; absent until that record is available. */
    payout?: Payout
    first_block: string
    /** The next block to search for the payout. */
    from_block: string
    /** The cash of the perp side at admission, at the venue's time `since_ms`. */
    cash_before: string
    /** The free USDC at admission in micro-dollars if perp and spot share one balance; otherwise null. */
    unified_free_before: string | null
    /** The poll at which the transfer list was last read for the payout. */
    payout_read_poll?: number
  }
type WithdrawStep = 'begin' | 'transferred' | 'withdraw' | 'confirm' | 'arrive' | SwapAfterStep

const admissionMs = 10 * 60_000

const factsOf = (account: string): ActionPlan['facts'] => ({
  operation: 'perp_withdraw',
  tokens: ['USDC'],
  recipients: [account],
  usdMicros: 0n,
  exit: true,
})

export const admitWithdraw = (deps: WithdrawDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    reread: (userId, admit) => rereadBalances(deps, userId, admit),
    check: (input: WithdrawInput, { userId }) => checkWithdraw(deps, input, userId),
    fund: (withdrawal, { isLast }) => fundWithdrawal(deps, withdrawal, { isLast }),
    start: (_withdrawal, data) => ({ first: 'begin', deadlineMs: admissionMs, data }),
  })

type Withdrawal = {
  action: PlannedAction
  account: string
  amountUsd: string
  destination?: Destination
}

async function checkWithdraw(deps: WithdrawDeps, input: WithdrawInput, userId: string): Promise<Withdrawal> {
  const { route, chainId, limits, evmAddressOf, swaps, policy } = deps
  const given = { chain: input.destination_chain_id, token: input.destination_token }
  const fields = { chain: 'destination_chain_id', token: 'destination_token' }
  const isDirect = isBridgeToken(route, given, { chains: swaps?.chains, fields })
  const minimum = limits.minWithdrawUsd
  if (compareDecimals(input.amount_usd, minimum) < 0)
    throw invalid(
      'amount_usd',
      'below_minimum',
      `Input should be at least ${minimum} USD, of which the venue keeps ${limits.withdrawFeeUsd} USD as its fee`,
      {
        minimum,
        unit: 'USD',
        fee: limits.withdrawFeeUsd,
      },
    )
  const account = await evmAddressOf(userId)
  const action: PlannedAction = { userId, chainId, ...factsOf(account) }
  const withdrawal = { action, account, amountUsd: input.amount_usd }
  if (!swaps || isDirect) return withdrawal
  await policy.check(action)
  const destination: Destination = {
    chain: input.destination_chain_id ?? route.chainId,
    token: input.destination_token ?? route.symbol,
    ...(input.slippage_bps !== undefined && { slippage_bps: input.slippage_bps }),
  }
  const amountUnits = toUnits(input.amount_usd, usdcDecimals) - toUnits(limits.withdrawFeeUsd, usdcDecimals)
  const leg = await prepareLeg(deps, swaps, { userId, destination, amountUnits, isAhead: true })
  // The withdrawal is an exit, but its swap counts against the limits, from the acceptance on.
  return { ...withdrawal, action: leg.action, destination }
}

async function fundWithdrawal(
  deps: WithdrawDeps,
  { action, account, amountUsd, destination }: Withdrawal,
  { isLast }: BalanceAttempt,
): Promise<WithdrawTaskData> {
  const { chain, clock } = deps
  const venue = await venueForExit(deps, action.userId)
  const [state, head, spendings] = await Promise.all([
    venue.account(account),
    chain.head(),
    recentSpendings(deps, action.userId),
  ])
  let freeBefore: bigint | null = null
  const transfer = await transferFor(
    {
      what: 'The withdrawal',
      required: toUnits(amountUsd, usdDecimals),
      available: toUnits(floored(state.withdrawableUsd), usdDecimals),
      pendingSpend: spendings.perpCash(state),
      isLast,
      isExit: true,
    },
    async (shortfall) => {
      const found = await collateralFor(venue, account, shortfall, spendings)
      if (found.transfer === noTransfer) freeBefore = found.otherMicros
      return found
    },
  )
  return {
    account,
    amount_usd: amountUsd,
    ahead_ms: clockSkewMs(clock, state.timeMs),
    since_ms: state.timeMs,
    first_block: String(head.number + 1n),
    from_block: String(head.number + 1n),
    ...transfer,
    cash_before: state.cashUsd,
    unified_free_before: freeBefore === null ? null : String(freeBefore),
    ...(destination && {
      destination,
      progress: { step: 1, of: 2, text: 'Withdrawal from the venue' },
    }),
  }
}

const floored = (usd: string): string => {
  const [whole = '0', fraction = ''] = usd.split('.')
  return fraction === '' ? whole : `${whole}.${fraction.slice(0, usdDecimals)}`
}

type WithdrawTask = TaskView<WithdrawTaskData>

export function withdrawSteps(deps: WithdrawDeps): Steps<WithdrawTaskData, WithdrawStep> {
  const payouts = createPayoutSearch(deps)
  const onRejected = (_task: TaskView, { message }: NotExecutedOutcome) =>
    failed(deps.rejections.codeOfRejection(message), message)
  const withdrawal = createEffect({
    steps: { sign: 'withdraw', confirm: 'confirm' },
    driver: venueDriver<WithdrawTaskData, true, WithdrawStep>(deps, {
      actionKey: 'withdraw',
      search: (task) => withdrawalSearch(deps, task, payouts),
      before: (task) => withdrawnBefore(deps, task),
      onRejected,
    }),
    plan: ({ data: { account, amount_usd: amount, ahead_ms: skewMs } }) => ({
      account,
      agent: account,
      skewMs,
      ttlMs: 0,
      facts: factsOf(account),
      action: { type: 'withdraw' as const, destination: account, amount },
    }),
    settle(task, _isSent, { now }) {
      const { amount_usd: amount, unified_free_before: unified, ahead_ms: skewMs } = task.data
      const atMs = now.getTime() + skewMs + noteErrorMs
      const paid = notePaid(task, { side: unified === null ? 'perp' : 'spot', amount, atMs, now })
      return { next: 'arrive', state: 'waiting', data: { polls: 0, ...paid } }
    },
  })
  const transfer = transferEffect<WithdrawTaskData, WithdrawStep>(deps, {
    steps: { sign: 'begin', confirm: 'transferred' },
    purpose: () => ({ operation: 'perp_withdraw', exit: true, to: 'perp' }),
    next: withdrawal.sign,
    onRejected,
  })
  return {
    begin: transfer.sign,
    transferred: transfer.confirm,
    withdraw: withdrawal.sign,
    confirm: withdrawal.confirm,
    async arrive(task, { now }) {
      const { found, data } = await findPayout(deps, payouts, task)
      return found ? arrived(deps, task, found, now) : waitForTransfer(task, now, 'arrive', data)
    },
    ...swapAfterWithdrawal(deps),
  }
}

/** Ends the withdrawal once its payout has arrived, or continues with the swap of the payout. */
function arrived(
  { chain, route, changed }: WithdrawDeps,
  task: WithdrawTask,
  { key, arrival }: FoundPayout,
  now: Date,
): StepResult<WithdrawTaskData, WithdrawStep> {
  const { account, amount_usd, destination, transfer_usd } = task.data
  const { amountUnits: paid, txHash, index } = arrival
  changed(task.userId, route.chainId)
  const balance_changes = [arrivedView(route, String(paid))]
  const writes = async (tx: Tx) => {
    const mine = await claimTransfer(tx, { key, userId: task.userId, taskId: task.id, at: now })
    if (!mine) throw claimedByAnother('payout')
    const paidTo = { chain: chain.row, txHash, part: String(index), account }
    await claimArrival(tx, paidTo, { claimant: venuePayouts, at: now })
  }
  if (destination) {
    const swap = swapNext({ units: String(paid), txHash, at: now.toISOString() })
    return { ...swap, data: { ...swap.data, balance_changes }, writes }
  }
  return {
    end: 'completed',
    outcome: 'executed',
    result: {
      // `amount` is the payout; `withdrawn_usd` is the payout plus the fee.
      amount: String(paid),
      amount_usd: fromUnits(paid, usdcDecimals),
      fee_usd: fromUnits(toUnits(amount_usd, usdcDecimals) - paid, usdcDecimals),
      withdrawn_usd: amount_usd,
      chain_id: route.chainId,
      token_address: route.token,
      tx_hash: txHash,
      credited_at: now.toISOString(),
      moved_from_spot_usd: transfer_usd,
    },
    data: { balance_changes },
    writes,
  }
}
