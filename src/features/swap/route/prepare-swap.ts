import type { SwapInput } from '#features/swap/contract.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import type { QuoteUrgency } from '#kernel/async/quote-rate-shares.ts'
import { Fault, renameFields } from '#kernel/contract/fault.ts'
import type { TokenAt } from '#kernel/contract/token-ref.ts'
import { sameAddress } from '#kernel/money/chains.ts'
import { fullBps } from '#kernel/money/money.ts'
import type { ProposedRoute } from '#kernel/money/swap-provider.ts'
import type { TokenVerdict } from '#kernel/money/token-security.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import { bestRoute, type CheckedRoute, urgencyOf } from './best-route.ts'
import { assertLossBounded } from './loss.ts'
import { storedQuote } from './quote-store.ts'
import { feesMicros, type QuotedFee } from './quote-view.ts'
import { providerFields, type SwapFields, termsOf } from './request-terms.ts'
import { safeRoute } from './route-checks.ts'
import { arrivalAction, swapAction } from './swap-action.ts'
import type { AskedTerms, SwapTerms } from './terms.ts'
import { valueAtPrice } from './token-value.ts'
import { coveringBalance } from './wallet-balance.ts'

/** This module does what a dry run and a swap share before the acceptance, so that a request fails alike in both. */

export type PreparedSwap = CheckedRoute & {
  terms: AskedTerms
  quoteExpiresAt: Date | null
  usdMicros: bigint
  outMicros: bigint | null
  fees: QuotedFee[]
  action: PlannedAction
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

export async function prepareSwap(
  deps: SwapDeps,
  input: SwapInput,
  { userId, fields, urgency, isAhead = false, asksPolicy }: PrepareOptions,
): Promise<PreparedSwap> {
  let terms = await termsOf(deps, input, { userId, ...(fields && { fields }) })
  // Quotes and token checks are scarce and shared by all users, so nobody gets one for more than the wallet holds.
  if (!terms.quoteId && !isAhead) await assertHeld(deps, terms, asksPolicy)
  const quote = terms.quoteId ? await storedQuote(deps, terms, terms.quoteId) : undefined
  const security = await assertSafe(deps, terms)
  if (quote) terms = await quotedTerms(deps, terms, quote.route)
  const wanted = isAhead ? 'watch' : (urgency ?? urgencyOf(terms, { isExecuted: !input.dryrun }))
  const { route, safe } = quote
    ? { route: quote.route, safe: safeRoute(deps, quote.route, terms) }
    : await bestRoute(deps, terms, wanted).catch((error: unknown) => {
        // Providers use the names of a swap in units.
        throw renameFields(error, providerFields(terms.given, fields))
      })
  const outMicros = await valueAtPrice(deps, terms.destination, route.amountOutUnits)
  const usdMicros = countedValue(terms, outMicros)
  assertLossBounded(terms, { outMicros, poolMicros: security.poolMicros })
  const fees = await feesOf(deps, terms, route)
  assertFees(terms, { fees, usdMicros })
  const { origin, destination, recipient } = terms
  // The user's limits apply to both chains; the value counts only on the chain that it leaves.
  if (origin.chain.id !== destination.chain.id)
    await deps.policy.check(
      arrivalAction({ userId, chainId: destination.chain.id, token: destination.token.address, recipient }),
    )
  const { amountInUnits, amountOutUnits } = route
  const action = swapAction(terms, {
    amountInUnits,
    amountOutUnits,
    outMicros,
    target: safe.target,
    usdMicros,
  })
  const quoteExpiresAt = quote?.expiresAt ?? null
  return { terms, route, safe, quoteExpiresAt, usdMicros, outMicros, fees, action, security }
}

/** Throws if the wallet holds too little; the policy may be asked first, about the terms known without a route. */
async function assertHeld(
  deps: SwapDeps,
  terms: SwapTerms,
  asksPolicy: PrepareOptions['asksPolicy'],
): Promise<void> {
  try {
    await coveringBalance(deps, terms)
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
