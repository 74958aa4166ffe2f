import { Fault } from '#kernel/fault.ts'
import type { ProposedRoute, RouteRequest, SwapProvider } from '#kernel/swap-provider.ts'

/** Asks every provider, and takes the best output of those that answer in time. */

type Bounds = {
  /** How long the others may take once one has a route. */
  graceMs: number
  signal?: AbortSignal
}
/** Whether the route is one that the gateway would sign. */
type IsSafe = (route: ProposedRoute) => void

/** The higher minimum wins, and the provider that comes first where they are equal. */
export async function bestRoute(
  providers: readonly SwapProvider[],
  request: RouteRequest,
  assertSafe: IsSafe,
  { graceMs, signal }: Bounds,
): Promise<ProposedRoute> {
  using scope = new DisposableStack()
  const ended = scope.adopt(new AbortController(), (controller) => controller.abort())
  const stop = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal
  const found: (ProposedRoute | undefined)[] = providers.map(() => undefined)
  const faults: (Fault | undefined)[] = providers.map(() => undefined)
  const asked = providers.map(async (provider, at) => {
    try {
      const route = await provider.quote(request, stop)
      assertSafe(route)
      found[at] = route
    } catch (error) {
      if (!(error instanceof Fault) && !stop.aborted) throw error
      faults[at] = error instanceof Fault ? error : undefined
    }
  })
  for (const each of asked) each.catch(() => undefined)
  const all = Promise.all(asked)
  const first = Promise.any(
    asked.map((each, at) => each.then(() => found[at] ?? Promise.reject(new Error()))),
  )
  // All have failed where there is no first one.
  const hasRoute = await Promise.race([first, all]).then(
    () => true,
    () => false,
  )
  if (hasRoute) await withinMs(all, graceMs)
  else await all
  const [best, ...others] = found.filter((route) => route !== undefined)
  if (best)
    return others.reduce(
      (one, other) => (other.amountOutMinUnits > one.amountOutMinUnits ? other : one),
      best,
    )
  throw faultOf(faults)
}

async function withinMs(work: Promise<unknown>, ms: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** What says something of the request itself comes before the absence of a route or of a provider. */
function faultOf(faults: readonly (Fault | undefined)[]): Fault {
  const known = faults.filter((fault) => fault !== undefined)
  const telling = known.find(({ code }) => code !== 'unavailable' && code !== 'no_route')
  return telling ?? known[0] ?? new Fault('no_route', 'There is no route for this swap')
}
