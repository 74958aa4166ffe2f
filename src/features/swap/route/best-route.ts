import { Fault } from '#kernel/contract/fault.ts'
import { fullBps, mulDiv } from '#kernel/money/money.ts'
import type { ProposedRoute, RouteRequest, SwapProvider } from '#kernel/money/swap-provider.ts'

/** Asks every provider, and takes the best output of those that answer in time. */

type Bounds = {
  /** How long the others may take once one has a route. */
  graceMs: number
  signal?: AbortSignal
}
export type RouteTrust = {
  /** Throws where the gateway would not sign the route. */
  assertSafe(route: ProposedRoute): void
  /** The output that the input is worth at trusted prices; null where a price is unknown. */
  worthUnits: Promise<bigint | null>
}

/** A quote that promises more than this above the worth of the input comes last. */
const aboveWorthBps = 1_000n
/** Where the worth is unknown, above the quote of another provider: honest ones differ much for rare tokens. */
const aboveOtherBps = 5_000n

/**
 * The higher minimum wins, and the provider that comes first where they are equal. A quote that promises far too much
 * is taken where there is no other one.
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
  // A quote that promises too much leaves the others all their time.
  const first = Promise.any(
    asked.map(async (each, at) => {
      await each
      const route = found[at]
      if (!route || isFarAbove(route, [], worth)) throw new Error('no route to begin the grace')
    }),
  )
  // All have ended where there is no first one.
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

/** The best one first. Of those that promise far too much, the one that promises least comes first. */
function ranked(routes: readonly ProposedRoute[], worth: bigint | null): ProposedRoute[] {
  const isFar = (route: ProposedRoute) => isFarAbove(route, routes, worth)
  const far = routes.filter(isFar)
  const near = routes.filter((route) => !isFar(route))
  return [...near.toSorted(byMinimum), ...far.toSorted(byMinimum).reverse()]
}

/** Two quotes that agree are not far: the displayed prices can be old. */
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
 * What says something of the request itself comes before the absence of a route or of a provider. A chain is unsupported
 * where no provider serves it.
 */
function faultOf(faults: readonly (Fault | undefined)[]): Fault {
  const known = faults.filter((fault) => fault !== undefined)
  const served = known.filter((fault) => !isOfChain(fault))
  const telling = served.find(({ code }) => code !== 'unavailable' && code !== 'no_route')
  return telling ?? served[0] ?? known[0] ?? new Fault('no_route', 'There is no route for this swap')
}
