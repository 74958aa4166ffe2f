import { Fault } from '#kernel/contract/fault.ts'
import { fullBps, mulDiv } from '#kernel/money/money.ts'
import type { ProposedRoute, RouteRequest, SwapProvider } from '#kernel/money/swap-provider.ts'

type Bounds = {
  /** How long the other providers may take once one has a route. */
  graceMs: number
  signal?: AbortSignal
}
export type RouteTrust = {
  /** Throws if the gateway would not sign the route. */
  assertSafe(route: ProposedRoute): void
  /** How many units of the output the input is worth at trusted prices; null if a price is unknown. */
  worthUnits: Promise<bigint | null>
}

/** A quote that promises more than the worth of the input by this share, in basis points, is ranked last. */
const aboveWorthBps = 1_000n
/** Without a known worth, the limit is this share above another quote; honest ones for rare tokens differ much. */
const aboveOtherBps = 5_000n

/**
 * Returns the route with the highest minimum; on a tie, the earlier provider wins. A quote that promises far
 * too much is taken only if there is no other.
 */
export async function bestRoute(
  providers: readonly SwapProvider[],
  request: RouteRequest,
  { assertSafe, worthUnits }: RouteTrust,
  { graceMs, signal }: Bounds,
): Promise<ProposedRoute> {
  using scope = new DisposableStack()
  const ended = scope.adopt(new AbortController(), (controller) => controller.abort())
  const stop = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal
  const found: (ProposedRoute | undefined)[] = providers.map(() => undefined)
  let worth: bigint | null = null
  const faults: (Fault | undefined)[] = providers.map(() => undefined)
  const asked = providers.map(async (provider, at) => {
    try {
      const route = await provider.quote(request, stop)
      assertSafe(route)
      worth = await worthUnits
      found[at] = route
    } catch (error) {
      if (!(error instanceof Fault) && !stop.aborted) throw error
      faults[at] = error instanceof Fault ? error : undefined
    }
  })
  for (const each of [...asked, worthUnits]) each.catch(() => undefined)
  const all = Promise.all(asked)
  // A quote that promises too much does not start the grace period, so the other providers keep all their time.
  const first = Promise.any(
    asked.map(async (each, at) => {
      await each
      const route = found[at]
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
    found.filter((route) => route !== undefined),
    worth,
  )
  if (best) return best
  throw faultOf(faults)
}

const byMinimum = (one: ProposedRoute, other: ProposedRoute): number =>
  Number(other.amountOutMinUnits > one.amountOutMinUnits) -
  Number(other.amountOutMinUnits < one.amountOutMinUnits)

/** Puts the best route first. Those that promise far too much come last, the least promising of them first. */
function ranked(routes: readonly ProposedRoute[], worth: bigint | null): ProposedRoute[] {
  const isFar = (route: ProposedRoute) => isFarAbove(route, routes, worth)
  const far = routes.filter(isFar)
  const near = routes.filter((route) => !isFar(route))
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
