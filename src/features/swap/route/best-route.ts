import type { SwapDeps } from '#features/swap/deps.ts'
import type { QuoteUrgency } from '#kernel/async/quote-rate-shares.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { sameAddress } from '#kernel/money/chains.ts'
import { fullBps, mulDiv, toMicros, unitsWorth } from '#kernel/money/money.ts'
import type { ProposedRoute, RouteRequest, SwapProvider } from '#kernel/money/swap-provider.ts'
import { otherProviderMs, routeMarginSeconds, swapLimits } from './limits.ts'
import { type SafeRoute, safeRoute } from './route-checks.ts'
import type { SwapTerms } from './terms.ts'
import { priceKeyOf } from './token-value.ts'

/** A route with what the gateway signs of it. */
export type CheckedRoute = { route: ProposedRoute; safe: SafeRoute }
type RouteDeps = Pick<SwapDeps, 'providers' | 'prices' | 'calls' | 'svmRules'>

export type RouteTrust = {
  /** Returns what the gateway signs of the route; throws if it would not sign it. */
  safeOf(route: ProposedRoute): SafeRoute
  /** How many units of the output the input is worth at trusted prices; null if a price is unknown. */
  worthUnits: Promise<bigint | null>
  /** How long the other providers may take once one has a route. */
  graceMs: number
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
export const bestRoute = (
  deps: RouteDeps,
  terms: SwapTerms,
  urgency: QuoteUrgency,
): Promise<CheckedRoute> => {
  const { origin, destination, account, recipient, amountInUnits, slippageBps, deadlineSeconds } = terms
  const request = {
    user: account,
    recipient,
    origin: { chainId: origin.chain.id, token: origin.token.address },
    destination: { chainId: destination.chain.id, token: destination.token.address },
    amountInUnits,
    slippageBps,
    ttlSeconds: deadlineSeconds + routeMarginSeconds,
    urgency,
  }
  return bestQuote(deps.providers, request, {
    // An unsafe quote is dropped here, so that it cannot displace a safe one.
    safeOf: (route) => safeRoute(deps, route, terms),
    worthUnits: worthUnits(deps, terms),
    graceMs: otherProviderMs,
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

/** A quote that promises more than the worth of the input by this share, in basis points, is ranked last. */
const aboveWorthBps = 1_000n
/** Without a known worth, the limit is this share above another quote; honest ones for rare tokens differ much. */
const aboveOtherBps = 5_000n

/**
 * Returns the route with the highest minimum; on a tie, the earlier provider wins. A quote that promises far
 * too much is taken only if there is no other.
 */
export async function bestQuote(
  providers: readonly SwapProvider[],
  request: RouteRequest,
  { safeOf, worthUnits, graceMs }: RouteTrust,
): Promise<CheckedRoute> {
  using scope = new DisposableStack()
  const { signal } = scope.adopt(new AbortController(), (controller) => controller.abort())
  const found: (CheckedRoute | undefined)[] = providers.map(() => undefined)
  let worth: bigint | null = null
  const faults: (Fault | undefined)[] = providers.map(() => undefined)
  const asked = providers.map(async (provider, at) => {
    try {
      const route = await provider.quote(request, signal)
      const safe = safeOf(route)
      worth = await worthUnits
      found[at] = { route, safe }
    } catch (error) {
      if (!(error instanceof Fault) && !signal.aborted) throw error
      faults[at] = error instanceof Fault ? error : undefined
    }
  })
  for (const each of [...asked, worthUnits]) each.catch(() => undefined)
  const all = Promise.all(asked)
  // A quote that promises too much does not start the grace period, so the other providers keep all their time.
  const first = Promise.any(
    asked.map(async (each, at) => {
      await each
      const route = found[at]?.route
      if (!route || isFarAbove(route, [], worth)) throw new Error('no route to begin the grace')
    }),
  )
  const hasRoute = await Promise.race([first, all]).then(
    () => true,
    () => false,
  )
  if (hasRoute) await withinMs(all, graceMs)
  else await all
  const [best] = ranked(
    found.filter((each) => each !== undefined),
    worth,
  )
  if (best) return best
  throw faultOf(faults)
}

const byMinimum = ({ route: one }: CheckedRoute, { route: other }: CheckedRoute): number =>
  Number(other.amountOutMinUnits > one.amountOutMinUnits) -
  Number(other.amountOutMinUnits < one.amountOutMinUnits)

/** Puts the best route first. Those that promise far too much come last, the least promising of them first. */
function ranked(found: readonly CheckedRoute[], worth: bigint | null): CheckedRoute[] {
  const routes = found.map(({ route }) => route)
  const isFar = ({ route }: CheckedRoute) => isFarAbove(route, routes, worth)
  const far = found.filter(isFar)
  const near = found.filter((each) => !isFar(each))
  return [...near.toSorted(byMinimum), ...far.toSorted(byMinimum).reverse()]
}

/**
 * Whether a quote promises too much. A quote that another quote confirms does not, because the trusted price may be
 * outdated.
 */
function isFarAbove(route: ProposedRoute, routes: readonly ProposedRoute[], worth: bigint | null): boolean {
  const others = routes.filter((each) => each !== route)
  const isAbove = (units: bigint, bps: bigint) => route.amountOutUnits > mulDiv(units, fullBps + bps, fullBps)
  if (worth === null) return others.some((other) => isAbove(other.amountOutUnits, aboveOtherBps))
  return (
    isAbove(worth, aboveWorthBps) && others.every((other) => isAbove(other.amountOutUnits, aboveWorthBps))
  )
}

async function withinMs(work: Promise<unknown>, ms: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const isOfChain = ({ code, issues }: Fault): boolean =>
  code === 'validation' && issues.length > 0 && issues.every(({ type }) => type === 'unsupported_chain')

/**
 * Returns the most useful of the faults: a fault of the request comes before a missing route or an unavailable
 * provider. A chain counts as unsupported only if no provider serves it.
 */
function faultOf(faults: readonly (Fault | undefined)[]): Fault {
  const known = faults.filter((fault) => fault !== undefined)
  const served = known.filter((fault) => !isOfChain(fault))
  const telling = served.find(({ code }) => code !== 'unavailable' && code !== 'no_route')
  return telling ?? served[0] ?? known[0] ?? new Fault('no_route', 'There is no route for this swap')
}
