import type { Ledger } from '#durable/ledger.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { BatchTaskData } from '#engines/evm-batch/batch-rules.ts'
import { clockSkewMs } from '#engines/venue/orders/trade-admission.ts'
import type { VenueDriverDeps } from '#engines/venue/orders/venue-effect.ts'
import { knownUnified } from '#engines/venue/records/account-mode.ts'
import { createAdmission } from '#kernel/admission.ts'
import { assetOf } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/fault.ts'
import { toUnits, usdcDecimals } from '#kernel/money.ts'
import type { EvmCall, PlannedAction, Policy } from '#kernel/signer.ts'
import type { AccountRef } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Account, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { Agents } from './agent-keys.ts'
import type { PerpInput } from './contract.ts'
import { type CreditTaskData, cashOf } from './credit-check.ts'
import { assertRoute, chainIdOf, depositShortage, walletToken } from './funding-route.ts'
import type { FundingRoute, PerpLimits } from './limits.ts'
import type { ApprovalTaskData, SetupDeps } from './setup.ts'

/** Admission of a deposit: the balance of the wallet, the gas, and the account at the venue before it. */

export type FundDeps = VenueDriverDeps & {
  db: Queryable
  venue: SetupDeps['venue'] & Pick<Hyperliquid, 'ledgerSince' | 'spotBalances' | 'accountMode'>
  agents: Agents
  batches: EvmBatches
  chain: Pick<Evm, 'balances' | 'transfers' | 'row'>
  transferCall: (token: string, to: string, amountUnits: bigint) => EvmCall
  ledger: Pick<Ledger, 'balance'>
  policy: Pick<Policy, 'check'>
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  route: FundingRoute
  clock: Clock
  limits: PerpLimits
}
type FundInput = PerpInput<'fund'>
export type FundTaskData = CreditTaskData &
  BatchTaskData &
  ApprovalTaskData & {
    amount_units: string
    since_ms: number
    /** As the request named it. */
    source_token?: string
    tx_hash?: string
    credited_at?: string
    /** True where the account was empty at the venue when the task began. */
    is_first?: boolean
  }

const admissionMs = 10 * 60_000

function amountOf({ amount, amount_usd }: FundInput, { minFundUsd }: PerpLimits): bigint {
  if ((amount === undefined) === (amount_usd === undefined))
    throw exactlyOneOf('amount_usd', 'amount', { hasBoth: amount_usd !== undefined })
  const units = amount_usd === undefined ? BigInt(amount!) : toUnits(amount_usd, usdcDecimals)
  if (units >= toUnits(minFundUsd, usdcDecimals)) return units
  throw invalid(
    amount === undefined ? 'amount_usd' : 'amount',
    'below_minimum',
    `Input should be at least ${minFundUsd} USDC: the bridge does not credit a smaller deposit`,
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
  asset: assetOf(chain.row, route.token),
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
    check: async (input: FundInput, { userId }) => checkFund(deps, input, userId),
    fund: (deposit) => fundDeposit(deps, deposit),
    start: ({ amountUnits, wallet }, { data, seen, gas }) => ({
      first: 'sign',
      deadlineMs: admissionMs,
      data,
      spend: { account: wallet, amountUnits, token: walletToken(deps.route), seen, gas },
    }),
  })

function checkFund(deps: FundDeps, input: FundInput, userId: string) {
  const { route, limits } = deps
  const { source_token: sourceToken } = input
  const given = { chain: chainIdOf(input.source_chain_id, route), token: sourceToken ?? route.symbol }
  assertRoute(route, given, { chain: 'source_chain_id', token: 'source_token' })
  const amountUnits = amountOf(input, limits)
  const action = { userId, ...fundFacts(route, amountUnits) }
  return { action, amountUnits, sourceToken, wallet: walletOf(userId, deps) }
}
type Deposit = ReturnType<typeof checkFund>

/** The observed balance, the gas to charge, and the state of the account at the venue before the deposit. */
async function fundDeposit(deps: FundDeps, { action, amountUnits, sourceToken, wallet }: Deposit) {
  const { venue, batches, route, clock, transferCall } = deps
  const { userId } = action
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
  const { current } = await deps.agents.of(userId)
  const unified = current !== undefined && knownUnified(await venue.accountMode(account))
  const gas = await batches.gasCharge({ userId, chainId: route.chainId, gas: trial.gas, fullExit: false })
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
  return { data, gas, seen: { ...cash, reread: readCash } }
}

type CashRequest = { wallet: AccountRef; account: string; amountUnits: bigint }

export async function cashCovering(
  { db, ledger, chain, route }: FundDeps,
  { wallet, account, amountUnits }: CashRequest,
): Promise<{ totalUnits: bigint; version: bigint }> {
  // Read the version before the chain: a hold that settles in between invalidates the balance.
  const { heldUnits, version } = await ledger.balance(db, wallet)
  const { tokens } = await chain.balances(account, [route.token])
  const [totalUnits] = tokens
  if (totalUnits === undefined)
    throw new Fault('unavailable', 'The chain returned no balance; try again later')
  const available = totalUnits > heldUnits ? totalUnits - heldUnits : 0n
  if (available < amountUnits) throw depositShortage(route, amountUnits, available)
  return { totalUnits, version }
}
