import type { ReservedSpend, ReserveSpend } from '#durable/accept/reserve-spend.ts'
import type { Ledger } from '#durable/ledger/ledger.ts'
import type { TradingKeys } from '#engines/custody/trading-keys.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { BatchTaskData } from '#engines/evm-batch/batch-plan.ts'
import { readFreeUnits } from '#engines/free-units/free-units.ts'
import { clockSkewMs } from '#engines/venue/orders/order-task.ts'
import type { VenueDriverDeps } from '#engines/venue/orders/venue-effect.ts'
import { knownUnified } from '#engines/venue/records/account-mode.ts'
import type { PreparedSwap } from '#features/swap/route/prepare-swap.ts'
import type { SwapLegs } from '#features/swap/swap-as-leg.ts'
import type { Clock } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/contract/fault.ts'
import { toAssetId } from '#kernel/money/chains.ts'
import { fromUnits, toUnits, usdcDecimals } from '#kernel/money/money.ts'
import { type Attempt, createAdmission } from '#kernel/task/admission.ts'
import { actionTerms, noFurtherCost } from '#kernel/task/approval.ts'
import type { EvmCall, PlannedAction, Policy } from '#kernel/task/signer.ts'
import type { AccountRef, TaskProgress } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Account, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpInput } from './contract.ts'
import { type CreditTaskData, cashOf } from './deposit-credit.ts'
import { depositShortage, type FundingRoute, isBridgeToken, walletToken } from './funding-route.ts'
import type { PerpLimits } from './limits.ts'
import type { ApprovalTaskData, SetupDeps } from './setup.ts'
import { type Delivered, type SwapLegData, swapFieldNames } from './swap-leg.ts'

export type FundDeps = VenueDriverDeps & {
  db: Queryable
  venue: SetupDeps['venue'] & Pick<Hyperliquid, 'ledgerSince' | 'spotBalances' | 'accountMode'>
  tradingKeys: TradingKeys
  batches: EvmBatches
  chain: Pick<Evm, 'account' | 'balances' | 'headAt' | 'transfers' | 'row'>
  transferCall: (token: string, to: string, amountUnits: bigint) => EvmCall
  ledger: Pick<Ledger, 'balance'>
  policy: Pick<Policy, 'check' | 'release'>
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  route: FundingRoute
  clock: Clock
  limits: PerpLimits
  /** The swaps before a deposit; undefined if no provider of swaps is configured. */
  swaps: SwapLegs | undefined
  reserve: ReserveSpend
}
type FundInput = PerpInput<'fund'>
export type FundTaskData = CreditTaskData &
  BatchTaskData &
  ApprovalTaskData &
  SwapLegData & {
    amount_units: string
    since_ms: number
    source_token?: string
    tx_hash?: string
    credited_at?: string
    /** Whether the account was empty at the venue when the task began. */
    is_first?: boolean
    swapped?: Delivered
    /** Whether the deposit was made before the database went back to an earlier time; then nothing is reserved. */
    is_deposited?: boolean
    progress?: TaskProgress
  }

const admissionMs = 10 * 60_000

export const minFundUnits = ({ minFundUsd }: PerpLimits): bigint => toUnits(minFundUsd, usdcDecimals)

function assertMinimum(
  { amount }: FundInput,
  limits: PerpLimits,
  { units, what }: { units: bigint; what: string },
): void {
  if (units >= minFundUnits(limits)) return
  const { minFundUsd } = limits
  throw invalid(
    amount === undefined ? 'amount_usd' : 'amount',
    'below_minimum',
    `${what} at least ${minFundUsd} USDC: the bridge does not credit a smaller deposit`,
    { minimum: minFundUsd, unit: 'USDC' },
  )
}

const holdsNothing = ({ positions, unread, cashUsd }: Account): boolean =>
  positions.length + unread.length === 0 && compareDecimals(cashUsd, '0') === 0

export const walletOf = (
  userId: string,
  { chain, route }: Pick<FundDeps, 'chain' | 'route'>,
): AccountRef => ({
  owner: userId,
  asset: toAssetId(chain.row, route.token),
  subAccount: 'wallet',
})

export const fundFacts = (route: FundingRoute, amountUnits: bigint): Omit<PlannedAction, 'userId'> => ({
  operation: 'perp_fund',
  chainId: route.chainId,
  tokens: [route.token],
  recipients: [route.bridge],
  usdMicros: amountUnits,
  exit: false,
})

export const admitFund = (deps: FundDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: (input: FundInput, attempt) => checkFund(deps, input, attempt),
    fund: (request) => (request.type === 'swap' ? fundSwap(deps, request) : fundDeposit(deps, request)),
    start: (_request, { first, data, spend }) => ({ first, deadlineMs: admissionMs, data, spend }),
  })

export type Deposit = {
  type: 'deposit'
  action: PlannedAction
  amountUnits: bigint
  sourceToken: string | undefined
}
type SwapBefore = {
  type: 'swap'
  action: PlannedAction
  swaps: SwapLegs
  prepared: PreparedSwap
  sourceToken: string | undefined
}
type Funds = { first: 'sign' | 'swap'; data: FundTaskData; spend: ReservedSpend }

export const depositOf = (
  { route }: Pick<FundDeps, 'route'>,
  { userId, amountUnits, sourceToken }: Pick<Deposit, 'amountUnits' | 'sourceToken'> & { userId: string },
): Deposit => ({
  type: 'deposit',
  action: {
    userId,
    ...fundFacts(route, amountUnits),
    terms: actionTerms(`Send ${fromUnits(amountUnits, usdcDecimals)} ${route.symbol} to Hyperliquid`, {
      token: route.symbol,
      amount: fromUnits(amountUnits, usdcDecimals),
      recipient: route.bridge,
      venue: 'Hyperliquid',
      cost: noFurtherCost,
    }),
  },
  amountUnits,
  sourceToken,
})

async function checkFund(deps: FundDeps, input: FundInput, attempt: Attempt): Promise<Deposit | SwapBefore> {
  const { userId } = attempt
  const { route, limits, swaps } = deps
  const { amount, amount_usd: amountUsd, source_token: sourceToken } = input
  const isDirect = isBridgeToken(
    route,
    { chain: input.source_chain_id, token: sourceToken },
    { chains: swaps?.chains, fields: { chain: 'source_chain_id', token: 'source_token' } },
  )
  if ((amount === undefined) === (amountUsd === undefined))
    throw exactlyOneOf('amount_usd', 'amount', { hasBoth: amountUsd !== undefined })
  if (swaps && !isDirect) return checkSwap(deps, swaps, { input, attempt })
  const amountUnits = amountUsd === undefined ? BigInt(amount!) : toUnits(amountUsd, usdcDecimals)
  assertMinimum(input, limits, { units: amountUnits, what: 'Input should be' })
  return depositOf(deps, { userId, amountUnits, sourceToken })
}

/** Quotes the swap and refuses it if its least output is too small for a deposit. */
async function checkSwap(
  deps: FundDeps,
  swaps: SwapLegs,
  { input, attempt: { userId, principal } }: { input: FundInput; attempt: Attempt },
): Promise<SwapBefore> {
  const { route, limits, policy } = deps
  const { amount, amount_usd: amountUsd, source_token: sourceToken, slippage_bps: slippageBps } = input
  const prepared = await swaps.prepare(
    {
      chain_id_in: input.source_chain_id ?? route.chainId,
      token_in: sourceToken ?? route.symbol,
      chain_id_out: route.chainId,
      token_out: route.token,
      ...(amount === undefined ? { amount_usd: amountUsd! } : { amount }),
      ...(slippageBps !== undefined && { slippage_bps: slippageBps }),
    },
    { userId, fields: swapFieldNames },
  )
  const { amountOutMinUnits: amountUnits } = prepared.route
  assertMinimum(input, limits, { units: amountUnits, what: 'The swap of the input should bring' })
  await policy.check({ ...depositOf(deps, { userId, amountUnits, sourceToken }).action, principal })
  return { type: 'swap', action: prepared.action, swaps, prepared, sourceToken }
}

async function fundSwap(
  deps: FundDeps,
  { action, swaps, prepared, sourceToken }: SwapBefore,
): Promise<Funds> {
  const { batches, route, chain } = deps
  await batches.ready(route.chainId)
  const { data: swap, spend } = await swaps.fund(prepared)
  const data: FundTaskData = {
    swap,
    account: await deps.evmAddressOf(action.userId),
    // Until the deposit is prepared, its amount is the minimum that the swap brings.
    amount_units: swap.amount_out_min,
    ahead_ms: 0,
    since_ms: 0,
    progress: { step: 1, of: 2, text: `Swap to ${route.symbol} on ${chain.row.displayName}` },
    ...(sourceToken !== undefined && { source_token: sourceToken }),
  }
  return { first: 'swap', data, spend }
}

/** Returns the wallet's balance, the gas to charge, and the state of the account at the venue before the deposit. */
export async function fundDeposit(
  deps: FundDeps,
  { action, amountUnits, sourceToken }: Deposit,
): Promise<Funds> {
  const { venue, batches, route, clock, transferCall } = deps
  const { userId } = action
  const wallet = walletOf(userId, deps)
  const account = await deps.evmAddressOf(userId)
  await batches.ready(route.chainId)
  const readCash = () => cashCovering(deps, { wallet, account, amountUnits })
  const [cash, state] = await Promise.all([readCash(), venue.account(account)])
  const trial = await batches.simulate(route.chainId, account, [
    transferCall(route.token, route.bridge, amountUnits),
  ])
  if (!trial.ok)
    throw new Fault('conflict', `The transfer would fail: ${trial.reason}`, {
      extras: { reason: trial.reason },
    })
  // An account without a key still has the default mode, and reading the mode costs much weight.
  const { current } = await deps.tradingKeys.of(userId)
  const unified = current !== undefined && knownUnified(await venue.accountMode(account))
  const gas = await batches.gasCharge({ chainId: route.chainId, gas: trial.gas, fullExit: false })
  const data: FundTaskData = {
    account,
    amount_units: String(amountUnits),
    ahead_ms: clockSkewMs(clock, state.timeMs),
    since_ms: state.timeMs,
    unified,
    cash_seen: unified ? await cashOf(venue, { account, unified }) : state.cashUsd,
    is_first: !unified && holdsNothing(state),
    ...(sourceToken !== undefined && { source_token: sourceToken }),
  }
  const seen = { ...cash, reread: readCash }
  const spend = { account: wallet, amountUnits, token: walletToken(route), seen, gas }
  return { first: 'sign', data, spend }
}

type CashRequest = { wallet: AccountRef; account: string; amountUnits: bigint }

export async function cashCovering(
  deps: FundDeps,
  { wallet, account, amountUnits }: CashRequest,
): Promise<{ totalUnits: bigint; version: bigint }> {
  const { chain, route } = deps
  const readTotal = async () => {
    const [units] = (await chain.balances(account, [route.token])).tokens
    if (units === undefined) throw new Fault('unavailable', 'The chain returned no balance; try again later')
    return units
  }
  const { totalUnits, freeUnits, version } = await readFreeUnits(deps, {
    account: wallet,
    readTotal,
    requiredUnits: amountUnits,
  })
  if (freeUnits < amountUnits) throw depositShortage(route, amountUnits, freeUnits)
  return { totalUnits, version }
}
