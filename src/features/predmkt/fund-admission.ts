import type { ReservedSpend } from '#durable/accept/reserve-spend.ts'
import { readFreeUnits } from '#engines/free-units/free-units.ts'
import type { PreparedSwap } from '#features/swap/route/prepare-swap.ts'
import type { SwapLegs } from '#features/swap/swap-as-leg.ts'
import { conflict, exactlyOneOf, Fault, invalid } from '#kernel/contract/fault.ts'
import { toAssetId } from '#kernel/money/chains.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { fromUnits, toUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import { type Attempt, createAdmission } from '#kernel/task/admission.ts'
import { actionTerms, noFurtherCost } from '#kernel/task/approval.ts'
import type { EvmCall, PlannedAction } from '#kernel/task/signer.ts'
import type { AccountRef } from '#kernel/task/task.ts'
import { setupIncomplete } from './account-checks.ts'
import { moneyOf } from './balances.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import type { FundTaskData } from './fund-task.ts'
import { assertRelays } from './relay-allowance.ts'
import { relayerOf } from './relay-outcome.ts'
import { accountOf, walletOfRow } from './store/account-store.ts'

/** Money is wrapped from the user's own account to the funded wallet; other tokens are swapped to one of its dollars first. */

type FundInput = PredmktInput<'fund'>
const fundMs = 10 * 60_000

export type WrapToken = { symbol: string; token: string }
type Source =
  | { type: 'wrap'; token: WrapToken; units: bigint; place: 'eoa' | 'deposit_wallet' }
  | { type: 'swap'; swaps: SwapLegs; prepared: PreparedSwap; target: WrapToken }
export type FundRequest = {
  action: PlannedAction
  wallet: VenueWallet
  source: Source
}

export const wrapFacts = (
  deps: Pick<PredmktDeps, 'venue' | 'chain'>,
  { token }: WrapToken,
  units: bigint,
): Omit<PlannedAction, 'userId'> => ({
  operation: 'predmkt_fund',
  chainId: deps.chain.row.id,
  tokens: [token],
  recipients: [rampOf(deps, token)],
  usdMicros: units,
  exit: false,
})

/** The contract that the wrapping call runs on. */
export const rampOf = (deps: Pick<PredmktDeps, 'venue'>, token: string): string =>
  moneyOf(deps).wrapCalls(token, 1n, token).at(-1)!.to

export const wrapCalls = (
  deps: Pick<PredmktDeps, 'venue'>,
  { token, units, to }: { token: string; units: bigint; to: string },
): EvmCall[] => moneyOf(deps).wrapCalls(token, units, to)

export const walletAccount = (
  { chain }: Pick<PredmktDeps, 'chain'>,
  userId: string,
  token: string,
): AccountRef => ({
  owner: userId,
  asset: toAssetId(chain.row, token),
  subAccount: 'wallet',
})

export const admitFund = (deps: PredmktDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: (input: FundInput, attempt) => checkFund(deps, input, attempt),
    async fund(request: FundRequest): Promise<FundFunds> {
      return request.source.type === 'swap'
        ? fundSwap(deps, request, request.source)
        : fundWrap(deps, request, request.source)
    },
    start: (_request, { first, data, spend }) => ({
      first,
      deadlineMs: fundMs,
      data,
      ...(spend && { spend }),
    }),
  })
type FundFunds = { first: 'sign' | 'swap' | 'relay'; data: FundTaskData; spend?: ReservedSpend }

async function checkFund(
  deps: PredmktDeps,
  input: FundInput,
  { userId, principal }: Attempt,
): Promise<FundRequest> {
  const { db, venue, limits, swaps } = deps
  const row = await accountOf(db, { userId, venue: venue.name })
  if (!row || (row.v1_ready_at ?? row.v2_ready_at) === null) throw setupIncomplete(['wallet'])
  const wallet = walletOfRow(row)
  const { amount, amount_usd: amountUsd } = input
  if (input.wrap_only && input.source_chain_id !== undefined && !isVenueChain(deps, input))
    throw invalid('source_chain_id', 'unsupported_chain', '`wrap_only` wraps what lies on Polygon')
  if ((amount === undefined) === (amountUsd === undefined))
    throw exactlyOneOf('amount_usd', 'amount', { hasBoth: amountUsd !== undefined })
  const { source_wallet: place = 'eoa' } = input
  if (place !== 'eoa' && !input.wrap_only)
    throw invalid('source_wallet', 'extra_forbidden', '`source_wallet` belongs to `wrap_only`')
  const token = wrapTokenOf(deps, input)
  const open = await openTokens(deps)
  // `wrap_only` never swaps, so it fails with what the venue says of a paused token.
  if (token && (input.wrap_only || open.includes(token))) {
    const units = amount === undefined ? toUnits(amountUsd!, usdcDecimals) : BigInt(amount)
    assertMinimum(input, limits.minFundUsd, units)
    return {
      action: { userId, ...wrapAction(deps, token, units) },
      wallet,
      source: { type: 'wrap', token, units, place },
    }
  }
  if (input.wrap_only)
    throw invalid('source_token_address', 'unsupported_asset', '`wrap_only` takes USDC and USDC.e on Polygon')
  if (!swaps)
    throw invalid(
      'source_token_address',
      'unsupported_asset',
      'No provider of swaps is configured: only USDC and USDC.e on Polygon',
    )
  const [target] = open
  if (!target) throw new Fault('unavailable', 'The venue takes neither USDC nor USDC.e now')
  const prepared = await swaps.prepare(
    {
      chain_id_in: input.source_chain_id ?? deps.chain.row.id,
      token_in: input.source_token_address ?? 'USDC',
      chain_id_out: deps.chain.row.id,
      token_out: target.token,
      ...(amount === undefined ? { amount_usd: amountUsd! } : { amount }),
      ...(input.slippage_bps !== undefined && { slippage_bps: input.slippage_bps }),
    },
    { userId, fields: { ...deps.swapLeg.swapFieldNames, token_in: 'source_token_address' } },
  )
  const { amountOutMinUnits } = prepared.route
  assertMinimum(input, limits.minFundUsd, amountOutMinUnits)
  await deps.policy.check({
    userId,
    ...wrapAction(deps, target, amountOutMinUnits),
    ...(principal && { principal }),
  })
  return { action: prepared.action, wallet, source: { type: 'swap', swaps, prepared, target } }
}

const wrapAction = (deps: PredmktDeps, token: WrapToken, units: bigint): Omit<PlannedAction, 'userId'> => ({
  ...wrapFacts(deps, token, units),
  terms: actionTerms(`Move ${fromUnits(units, usdcDecimals)} ${token.symbol} to your wallet at Polymarket`, {
    token: token.symbol,
    amount: fromUnits(units, usdcDecimals),
    recipient: rampOf(deps, token.token),
    venue: 'Polymarket',
    cost: noFurtherCost,
  }),
})

const isVenueChain = (deps: PredmktDeps, { source_chain_id: chain }: FundInput): boolean =>
  deps.tokenOnChain(chain, moneyOf(deps).wrappable[0]!.token) !== undefined

/** The tokens that the ramp takes now; a read that fails counts as open, because the wrapping is simulated later. */
async function openTokens({ chain, venue }: Pick<PredmktDeps, 'chain' | 'venue'>): Promise<WrapToken[]> {
  const { wrappable, wrapPausedCall } = moneyOf({ venue })
  const { results } = await chain.views(wrappable.map(({ token }) => wrapPausedCall(token)))
  return wrappable.filter((_, index) => {
    const { success, data } = results[index]!
    return !success || data.length !== 66 || BigInt(data) === 0n
  })
}

/** The token that the ramp takes as it is; undefined if the source is another token or chain. */
function wrapTokenOf(deps: PredmktDeps, { source_chain_id: chain, source_token_address: named }: FundInput) {
  const { wrappable } = moneyOf(deps)
  const wanted = named ?? 'USDC'
  const bySymbol = wrappable.find(({ symbol }) => symbol.toLowerCase() === wanted.toLowerCase())
  const address = deps.tokenOnChain(chain, bySymbol?.token ?? wanted)
  return wrappable.find(({ token }) => token.toLowerCase() === address?.toLowerCase())
}

function assertMinimum({ amount }: FundInput, minimum: string, units: bigint): void {
  if (units >= toUnits(minimum, usdcDecimals)) return
  throw invalid(
    amount === undefined ? 'amount_usd' : 'amount',
    'below_minimum',
    `At least ${minimum} USD have to arrive`,
    { minimum, unit: 'USD' },
  )
}

async function fundSwap(
  deps: PredmktDeps,
  { action, wallet }: FundRequest,
  { swaps, prepared, target }: Extract<Source, { type: 'swap' }>,
): Promise<FundFunds> {
  await deps.batches.ready(deps.chain.row.id)
  const { data: swap, spend } = await swaps.fund(prepared)
  const data: FundTaskData = {
    swap,
    account: await deps.evmAddressOf(action.userId),
    wallet,
    token: target.token,
    symbol: target.symbol,
    units: swap.amount_out_min,
    progress: { step: 1, of: 2, text: `Swap to ${target.symbol} on ${deps.chain.row.displayName}` },
  }
  return { first: 'swap', data, spend }
}

async function fundWrap(
  deps: PredmktDeps,
  { action: { userId }, wallet }: FundRequest,
  { token, units, place }: Extract<Source, { type: 'wrap' }>,
): Promise<FundFunds> {
  const account = await deps.evmAddressOf(userId)
  const data: FundTaskData = {
    account,
    wallet,
    token: token.token,
    symbol: token.symbol,
    units: String(units),
  }
  if (place === 'deposit_wallet') {
    await assertInWallet(deps, wallet.wallet, { token, units })
    await assertRelays(deps, userId, { isExit: false })
    return { first: 'relay', data }
  }
  const spend = await wrapSpend(deps, { userId, account, to: wallet.wallet, token, units })
  return { first: 'sign', data, spend }
}

async function assertInWallet(
  deps: PredmktDeps,
  wallet: string,
  { token, units }: { token: WrapToken; units: bigint },
): Promise<void> {
  relayerOf(deps)
  const { tokens } = await deps.chain.balances(wallet, [token.token])
  const availableUnits = tokens[0] ?? 0n
  if (availableUnits >= units) return
  throw insufficientBalance(
    { symbol: token.symbol, decimals: usdcDecimals, address: token.token, chainId: deps.chain.row.id },
    { what: 'The wrapping', requiredUnits: units, availableUnits },
  )
}

type Wrap = { userId: string; account: string; to: string; token: WrapToken; units: bigint }

/** Reads the balance, simulates the wrapping and computes the charge for its gas. */
export async function wrapSpend(
  deps: PredmktDeps,
  { userId, account, to, token, units }: Wrap,
): Promise<ReservedSpend> {
  const { chain, batches } = deps
  const ref = walletAccount(deps, userId, token.token)
  await batches.ready(chain.row.id)
  const readTotal = async () => (await chain.balances(account, [token.token])).tokens[0] ?? 0n
  const read = async () => {
    const balance = await readFreeUnits(deps, { account: ref, readTotal, requiredUnits: units })
    const { totalUnits, freeUnits, version } = balance
    if (freeUnits < units)
      throw insufficientBalance(
        { symbol: token.symbol, decimals: usdcDecimals, address: token.token, chainId: chain.row.id },
        { what: 'The funding', requiredUnits: units, availableUnits: freeUnits },
      )
    return { totalUnits, version }
  }
  const seen = await read()
  const trial = await batches.simulate(
    chain.row.id,
    account,
    wrapCalls(deps, { token: token.token, units, to }),
  )
  if (!trial.ok) throw conflict(`The venue takes no ${token.symbol} now: ${trial.reason}`, trial.reason)
  const gas = await batches.gasCharge({ chainId: chain.row.id, gas: trial.gas, fullExit: false })
  const ledgerToken = { symbol: token.symbol, decimals: usdcDecimals, address: token.token }
  return { account: ref, amountUnits: units, token: ledgerToken, seen: { ...seen, reread: read }, gas }
}
