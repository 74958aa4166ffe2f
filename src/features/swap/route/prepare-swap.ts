import type { SwapInput } from '#features/swap/contract.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import { arrivalAction } from '#features/swap/task-data.ts'
import { Fault, renameFields } from '#kernel/contract/fault.ts'
import type { TokenAt } from '#kernel/contract/token-ref.ts'
import { type Chain, sameAddress, type Token } from '#kernel/money/chains.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { fullBps, toMicros, unitsWorth } from '#kernel/money/money.ts'
import type { QuoteUrgency } from '#kernel/money/quote-budget.ts'
import type { ProposedRoute, RouteRequest } from '#kernel/money/swap-provider.ts'
import type { TokenVerdict } from '#kernel/money/token-security.ts'
import type { EvmCall, PlannedAction } from '#kernel/task/signer.ts'
import type { AccountRef, ReadBalance } from '#kernel/task/task.ts'
import { termsOfSwap } from './approval-terms.ts'
import { bestRoute } from './best-route.ts'
import { otherProviderMs, routeMarginSeconds, swapLimits } from './limits.ts'
import { assertLossBounded } from './loss.ts'
import { storedQuote } from './quote-store.ts'
import { feesMicros, type QuotedFee } from './quote-view.ts'
import {
  assetNameOf,
  priceKeyOf,
  providerFields,
  type SwapFields,
  termsOf,
  valueAtPrice,
} from './request-terms.ts'
import { type SafeRoute, safeRoute } from './route-checks.ts'
import type { AskedTerms, SwapTerms } from './terms.ts'

/** This module does what a dry run and a swap share before the acceptance, so that a request fails alike in both. */

export type PreparedSwap = {
  terms: AskedTerms
  route: ProposedRoute
  safe: SafeRoute
  quoteExpiresAt: Date | null
  usdMicros: bigint
  outMicros: bigint | null
  fees: QuotedFee[]
  action: PlannedAction
  wallet: AccountRef
  security: TokenVerdict
}

export type PrepareOptions = {
  userId: string
  fields?: SwapFields
  /** The urgency of the quotes; if absent, it follows from the tokens that the swap sells and buys. */
  urgency?: QuoteUrgency
  /** Whether the sold amount arrives later: the quote then only shows an outcome, and a new quote is executed. */
  isAhead?: boolean
  /** Makes a denial of the policy win over a shortage of balance, as in other admissions. */
  asksPolicy?: 'on_shortage'
}
type RouteDeps = Pick<SwapDeps, 'providers' | 'prices' | 'calls' | 'svmRules'>

export async function prepareSwap(
  deps: SwapDeps,
  input: SwapInput,
  { userId, fields, urgency, isAhead = false, asksPolicy }: PrepareOptions,
): Promise<PreparedSwap> {
  const asked = await termsOf(deps, input, { userId, ...(fields && { fields }) })
  const { quoteId } = asked
  // Quotes and token checks are scarce and shared by all users, so nobody gets one for more than the wallet holds.
  if (!quoteId && !isAhead) await assertHeld(deps, asked, asksPolicy)
  const stored = quoteId ? await storedQuote(deps, { ...asked, quoteId }) : undefined
  const security = await assertSafe(deps, asked)
  const terms = stored ? await quotedTerms(deps, asked, stored.route) : asked
  const wanted = isAhead ? 'watch' : (urgency ?? urgencyOf(terms, { isExecuted: !input.dryrun }))
  const route =
    stored?.route ??
    (await routeNaming(deps, terms, { fields: providerFields(terms.given, fields), urgency: wanted }))
  const safe = safeRoute(deps, route, terms)
  const outMicros = await valueAtPrice(deps, terms.destination, route.amountOutUnits)
  const usdMicros = countedValue(terms, outMicros)
  assertLossBounded(terms, { outMicros, poolMicros: security.poolMicros })
  const fees = await feesOf(deps, terms, route)
  assertFees(terms, { fees, usdMicros })
  const { origin, destination } = terms
  const isDirect = origin.chain.id === destination.chain.id
  const action = {
    userId,
    operation: 'swap',
    chainId: origin.chain.id,
    tokens: isDirect ? [origin.token.address, destination.token.address] : [origin.token.address],
    recipients: [safe.target],
    usdMicros,
    exit: false,
    terms: termsOfSwap(terms, route.amountInUnits),
    ...lossBeyondDefault(terms),
  }
  // The user's limits apply to both chains; the value counts only on the chain that it leaves.
  if (!isDirect)
    await deps.policy.check(
      arrivalAction({
        userId,
        chainId: destination.chain.id,
        token: destination.token.address,
        recipient: terms.recipient,
      }),
    )
  return {
    terms,
    route,
    safe,
    quoteExpiresAt: stored?.expiresAt ?? null,
    usdMicros,
    outMicros,
    fees,
    action,
    wallet: walletOf(terms),
    security,
  }
}

/** A loss above the default needs the approval of a person if an agent asks for the swap. */
const lossBeyondDefault = ({ maxImpactBps }: SwapTerms) =>
  maxImpactBps > swapLimits.priceImpactBps.default ? { acceptedLossBps: maxImpactBps } : {}

const walletOf = ({ userId, origin }: SwapTerms): AccountRef => ({
  owner: userId,
  asset: assetNameOf(origin),
  subAccount: 'wallet',
})

/** Throws if the wallet holds too little; the policy may be asked first, about the terms known without a route. */
async function assertHeld(
  deps: SwapDeps,
  terms: SwapTerms,
  asksPolicy: PrepareOptions['asksPolicy'],
): Promise<void> {
  try {
    await cashCovering(deps, { terms, wallet: walletOf(terms) })
  } catch (refusal) {
    const { userId, origin, valueInMicros } = terms
    if (asksPolicy && refusal instanceof Fault && !refusal.retryable)
      await deps.policy.check({
        userId,
        operation: 'swap',
        chainId: origin.chain.id,
        tokens: [origin.token.address],
        recipients: [],
        usdMicros: valueInMicros ?? 0n,
        exit: false,
        // A denial of the policy is reported before the shortage, but no approval is asked for an amount that is not there.
        principal: 'gateway',
      })
    throw refusal
  }
}

/** Returns the terms with the quote's units: an amount in dollars keeps the units that it had at the quote. */
const quotedTerms = async (
  deps: SwapDeps,
  terms: AskedTerms,
  { amountInUnits }: ProposedRoute,
): Promise<AskedTerms> => ({
  ...terms,
  amountInUnits,
  valueInMicros: await valueAtPrice(deps, terms.origin, amountInUnits),
})

/** The bought token has to be proven safe by its verdict. The sold token is not checked: it may always be sold. */
async function assertSafe({ verdicts }: SwapDeps, { userId, destination }: SwapTerms): Promise<TokenVerdict> {
  const { chain, token } = destination
  const [verdict] = await verdicts.verdictOf([{ chainId: chain.id, address: token.address }], { userId })
  if (verdict?.allowed) return verdict
  const { status = 'skipped', reasons = [] } = verdict ?? {}
  throw new Fault('token_unsafe', `The security check did not pass ${token.symbol || 'the token'}`, {
    extras: {
      status,
      chain_id: chain.id,
      token_address: token.address,
      reasons: reasons.map(({ code, level, message }) => ({ code, level, message })),
    },
  })
}

/** Returns how much output the input is worth at trusted prices, or null if a price is unknown. */
async function worthUnits(
  { prices }: Pick<SwapDeps, 'prices'>,
  { valueInMicros, destination }: SwapTerms,
): Promise<bigint | null> {
  if (valueInMicros === null) return null
  const key = priceKeyOf(destination)
  const price = (await prices.get([key])).get(key)
  return price ? unitsWorth(valueInMicros, destination.token.decimals, price.price) : null
}

/**
 * Returns the urgency of the quotes. A sale for USDC closes a position, so it may use the budget reserved for exits.
 * Anybody can create a token without a price or hold dust, so such amounts get the lowest urgency, `watch`.
 */
export const urgencyOf = (
  { origin, destination, valueInMicros }: Pick<SwapTerms, 'origin' | 'destination' | 'valueInMicros'>,
  { isExecuted }: { isExecuted: boolean },
): QuoteUrgency => {
  if (valueInMicros === null || valueInMicros < toMicros(swapLimits.minSwapUsd)) return 'watch'
  const [fromUsdc, intoUsdc] = [origin, destination].map(({ chain, token }) =>
    sameAddress(chain, token.address, chain.usdc),
  )
  if (intoUsdc && !fromUsdc) return isExecuted ? 'exit' : 'trade'
  return isExecuted ? 'trade' : 'watch'
}

/** Returns the best of the routes that the gateway would sign. */
export const routeOf = (deps: RouteDeps, terms: SwapTerms, urgency: QuoteUrgency): Promise<ProposedRoute> => {
  const { origin, destination, account, recipient, amountInUnits, slippageBps, deadlineSeconds } = terms
  const request: RouteRequest = {
    user: account,
    recipient,
    origin: { chainId: origin.chain.id, token: origin.token.address },
    destination: { chainId: destination.chain.id, token: destination.token.address },
    amountInUnits,
    slippageBps,
    ttlSeconds: deadlineSeconds + routeMarginSeconds,
    urgency,
  }
  const trust = {
    // An unsafe quote is dropped here, so that it cannot displace a safe one.
    assertSafe: (route: ProposedRoute) => void safeRoute(deps, route, terms),
    worthUnits: worthUnits(deps, terms),
  }
  return bestRoute(deps.providers, request, trust, { graceMs: otherProviderMs })
}

/** Renames the fields in faults of providers, which use the names of a swap in units. */
const routeNaming = (
  deps: RouteDeps,
  terms: SwapTerms,
  { fields, urgency }: { fields: SwapFields; urgency: QuoteUrgency },
): Promise<ProposedRoute> =>
  routeOf(deps, terms, urgency).catch((error: unknown) => {
    throw renameFields(error, fields)
  })

/** Returns the higher of the sold and the bought value, because neither side alone is trusted. */
function countedValue({ valueInMicros, origin }: SwapTerms, outMicros: bigint | null): bigint {
  if (valueInMicros === null && outMicros === null)
    throw new Fault(
      'unavailable',
      `There is no trusted price of ${origin.token.symbol || 'the token'}; try again later`,
    )
  const [a, b] = [valueInMicros ?? 0n, outMicros ?? 0n]
  return a > b ? a : b
}

async function feesOf(deps: SwapDeps, terms: SwapTerms, route: ProposedRoute): Promise<QuotedFee[]> {
  const { origin, destination } = terms
  const coins = [origin, destination].map(({ chain }) => ({ chain, token: chain.native, isNative: true }))
  const known: TokenAt[] = [origin, destination, ...coins]
  return Promise.all(
    route.fees.map(async ({ type, chainId, token, amountUnits, isIncluded }): Promise<QuotedFee> => {
      const end = known.find(
        (each) => each.chain.id === chainId && sameAddress(each.chain, each.token.address, token),
      )
      const micros = end ? await valueAtPrice(deps, end, amountUnits) : null
      return { type, chainId, token, amountUnits, micros, paidBy: isIncluded ? 'user' : 'gateway' }
    }),
  )
}

function assertFees(
  { maxFeeBps }: SwapTerms,
  { fees, usdMicros }: { fees: QuotedFee[]; usdMicros: bigint },
): void {
  if (maxFeeBps === null) return
  const total = feesMicros(fees)
  if (total !== null && total * fullBps <= usdMicros * BigInt(maxFeeBps)) return
  throw new Fault(
    'no_route',
    'The fees of the route exceed `max_fee_bps`, or are unknown: raise it, leave it out, or swap a larger amount',
    { extras: { reason: 'fees', limit_bps: maxFeeBps } },
  )
}

/** Reads the ledger before the chain, so that a hold that settles in between invalidates the balance. */
export async function cashCovering(
  deps: SwapDeps,
  { terms, wallet }: { terms: SwapTerms; wallet: AccountRef },
): Promise<ReadBalance> {
  const { chain, token } = terms.origin
  const { heldUnits, version } = await deps.ledger.balance(deps.db, wallet)
  const totalUnits = await walletUnits(deps, { ...terms.origin, account: terms.account })
  const availableUnits = totalUnits > heldUnits ? totalUnits - heldUnits : 0n
  if (availableUnits < terms.amountInUnits)
    throw insufficientBalance(
      { ...token, chainId: chain.id },
      { what: 'The swap', requiredUnits: terms.amountInUnits, availableUnits },
    )
  return { totalUnits, version }
}

type Held = { chain: Chain; token: Pick<Token, 'address'>; isNative: boolean; account: string }

/** Reads the balance of one token only, because anybody can send a wallet thousands of other tokens. */
export async function walletUnits(
  { evmOf, solana }: Pick<SwapDeps, 'evmOf' | 'solana'>,
  { chain, token: { address }, isNative, account }: Held,
): Promise<bigint> {
  const read = async () => {
    if (chain.family === 'solana') return solana?.balance(account, address, isNative)
    const held = await evmOf(chain.id)?.balances(account, isNative ? [] : [address])
    return isNative ? held?.nativeUnits : held?.tokens[0]
  }
  const units = await read()
  if (units === undefined) throw new Fault('unavailable', 'The chain returned no balance; try again later')
  return units
}

const wordOf = (data: string | undefined): bigint | undefined =>
  data !== undefined && data.length >= 66 ? BigInt(data.slice(0, 66)) : undefined

/** Runs the calls on the state of the chain, and measures the output if it arrives on the same chain. */
export async function simulateSwap({ evmOf, calls }: SwapDeps, prepared: PreparedSwap): Promise<void> {
  const { terms, route, safe } = prepared
  if (safe.family === 'solana') return
  const { chain, token, isNative } = terms.destination
  const evm = evmOf(terms.origin.chain.id)!
  const isDirect = route.settledBy === 'receipt'
  const balance: EvmCall[] = !isDirect
    ? []
    : [
        isNative
          ? calls.nativeBalanceOf(evm, terms.recipient)
          : calls.balanceOf(token.address, terms.recipient),
      ]
  const simulation = await evm.simulate(terms.account, [...balance, ...safe.calls, ...balance])
  if (!simulation.ok)
    throw new Fault('conflict', `The swap would fail: ${simulation.reason}`, {
      extras: { reason: simulation.reason },
    })
  if (!isDirect) return
  const [before, after] = [wordOf(simulation.returns[0]), wordOf(simulation.returns.at(-1))]
  if (before === undefined || after === undefined)
    throw new Fault('unavailable', `${chain.displayName} returned no balance for the simulation; try again`)
  if (after - before < route.amountOutMinUnits)
    throw new Fault('insufficient_liquidity', 'The simulated output is below the minimum of the quote', {
      extras: { simulated: String(after - before), minimum: String(route.amountOutMinUnits) },
    })
}
