import { Fault } from '#kernel/fault.ts'
import { insufficientBalance } from '#kernel/insufficient-balance.ts'
import type { TokenVerdict } from '#kernel/security.ts'
import type { EvmCall, PlannedAction } from '#kernel/signer.ts'
import type { ProposedRoute, RouteRequest } from '#kernel/swap-provider.ts'
import type { AccountRef, ReadBalance } from '#kernel/task.ts'
import { bestRoute } from './best-route.ts'
import type { SwapInput } from './contract.ts'
import type { SwapDeps } from './deps.ts'
import { otherProviderMs, routeMarginSeconds } from './limits.ts'
import { feesMicros, type QuotedFee } from './quote-view.ts'
import { storedQuote } from './quotes.ts'
import { assetNameOf, termsOf, valueAtPrice } from './request.ts'
import { type SafeRoute, safeRoute } from './route-checks.ts'
import type { SwapTerms } from './terms.ts'

/** What a dry run and a swap share, up to the acceptance: the same request fails at the same place. */

export type PreparedSwap = {
  terms: SwapTerms
  route: ProposedRoute
  safe: SafeRoute
  /** Of the bound quote that is executed. */
  quoteId: string | null
  quoteExpiresAt: Date | null
  usdMicros: bigint
  outMicros: bigint | null
  fees: QuotedFee[]
  action: PlannedAction
  wallet: AccountRef
  security: TokenVerdict
}

export async function prepareSwap(deps: SwapDeps, input: SwapInput, userId: string): Promise<PreparedSwap> {
  const asked = await termsOf(deps, input, userId)
  const security = await assertSafe(deps, asked)
  const { quote_id: quoteId } = input
  const stored = quoteId ? await storedQuote(deps, asked, { ...input, quote_id: quoteId }) : undefined
  const terms = stored ? await quotedTerms(deps, asked, stored.route) : asked
  const route = stored?.route ?? (await routeOf(deps, terms))
  const safe = safeRoute(deps, route, terms)
  const outMicros = await valueAtPrice(deps, terms.destination, route.amountOutUnits)
  const usdMicros = countedValue(terms, outMicros)
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
  }
  // The limits of the user hold on both chains; the value counts on the one where it leaves.
  if (!isDirect) await deps.policy.check(arrivalOf(terms))
  const wallet = { owner: userId, asset: assetNameOf(origin), subAccount: 'wallet' }
  return {
    terms,
    route,
    safe,
    quoteId: quoteId || null,
    quoteExpiresAt: stored?.expiresAt ?? null,
    usdMicros,
    outMicros,
    fees,
    action,
    wallet,
    security,
  }
}

/** Dollars are as many units as they were when the quote was made. */
const quotedTerms = async (
  deps: SwapDeps,
  terms: SwapTerms,
  { amountInUnits }: ProposedRoute,
): Promise<SwapTerms> => ({
  ...terms,
  amountInUnits,
  valueInMicros: await valueAtPrice(deps, terms.origin, amountInUnits),
})

/** The token that is bought: only a verdict that proves it safe passes. What is sold may always be sold. */
async function assertSafe({ verdicts }: SwapDeps, { destination }: SwapTerms): Promise<TokenVerdict> {
  const { chain, token } = destination
  const [verdict] = await verdicts.verdictOf([{ chainId: chain.id, address: token.address }])
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

const arrivalOf = ({ userId, destination, recipient }: SwapTerms): PlannedAction => ({
  userId,
  operation: 'swap',
  chainId: destination.chain.id,
  tokens: [destination.token.address],
  recipients: [recipient],
  usdMicros: 0n,
  exit: false,
})

const routeOf = (deps: SwapDeps, terms: SwapTerms): Promise<ProposedRoute> => {
  const { origin, destination, account, recipient, amountInUnits, slippageBps, deadlineSeconds } = terms
  const request: RouteRequest = {
    user: account,
    recipient,
    origin: { chainId: origin.chain.id, token: origin.token.address },
    destination: { chainId: destination.chain.id, token: destination.token.address },
    amountInUnits,
    slippageBps,
    ttlSeconds: deadlineSeconds + routeMarginSeconds,
  }
  // A quote that would be refused must not keep a good one from being taken.
  const assertSafe = (route: ProposedRoute) => void safeRoute(deps, route, terms)
  return bestRoute(deps.providers, request, assertSafe, { graceMs: otherProviderMs })
}

/** The higher of what leaves and what arrives: neither side alone is trusted. */
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
  const ends = [terms.origin, terms.destination]
  return Promise.all(
    route.fees.map(async ({ type, chainId, token, amountUnits, isIncluded }): Promise<QuotedFee> => {
      const end = ends.find(
        (each) => each.chain.id === chainId && each.token.address.toLowerCase() === token.toLowerCase(),
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
  if (total !== null && total * 10_000n <= usdMicros * BigInt(maxFeeBps)) return
  throw new Fault('no_route', 'The fees of every route exceed `max_fee_bps`', {
    extras: { reason: 'fees', limit_bps: maxFeeBps },
  })
}

/** Reads the ledger before the chain: a hold that settles in between invalidates the balance. */
export async function cashCovering(
  deps: SwapDeps,
  { terms, wallet, route }: PreparedSwap,
): Promise<ReadBalance> {
  const { token } = terms.origin
  const { heldUnits, version } = await deps.ledger.balance(deps.db, wallet)
  const totalUnits = await unitsOf(deps, terms)
  if (totalUnits === undefined)
    throw new Fault('unavailable', 'The chain returned no balance; try again later')
  const availableUnits = totalUnits > heldUnits ? totalUnits - heldUnits : 0n
  if (availableUnits < route.amountInUnits)
    throw insufficientBalance(token, {
      what: 'The swap',
      requiredUnits: route.amountInUnits,
      availableUnits,
    })
  return { totalUnits, version }
}

async function unitsOf(
  { evmOf, solana }: SwapDeps,
  { origin, account }: SwapTerms,
): Promise<bigint | undefined> {
  const { chain, token, isNative } = origin
  if (chain.family === 'solana') {
    const held = await solana?.holdings(account)
    if (!held || isNative) return held?.lamports
    return held.tokens.find(({ mint }) => mint === token.address)?.amountUnits ?? 0n
  }
  const { nativeUnits, tokens } = await evmOf(chain.id)!.balances(account, isNative ? [] : [token.address])
  return isNative ? nativeUnits : tokens[0]
}

const wordOf = (data: string | undefined): bigint | undefined =>
  data !== undefined && data.length >= 66 ? BigInt(data.slice(0, 66)) : undefined

/** Runs the calls on the state of the chain and measures what arrives, where it arrives at once. */
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
