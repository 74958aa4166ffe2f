import { useCompileCache } from '#world/compile-cache.ts'
import type { Realism } from './realism.ts'

useCompileCache()
const { createAccountHistory } = await import('./account-history.ts')
const { httpRpc, openBridge } = await import('./bridge.ts')
const { serveControl } = await import('./control.ts')
const { changedUsers, openEngine } = await import('./engine.ts')
const { createInjectedFailures } = await import('#world/venue-core/injected-failures.ts')
const { createVenueApi } = await import('./api.ts')
const { createPayoutSender } = await import('./payouts.ts')
const { createRealismControl, longestLagMs, quiet, readRealism } = await import('./realism.ts')
const { createRealisticInfo } = await import('./realistic-info.ts')
const { exitOnFatal, intervalMaxMs, readVenueOptions, runVenue } = await import(
  '#world/venue-core/venue-process.ts'
)
const { serve } = await import('./server.ts')
const { openStream } = await import('./stream.ts')
const { createRateBudget } = await import('./rate-budget.ts')

const options = readVenueOptions({
  'arbitrum-rpc': undefined,
  'bridge-ms': '500',
  'weight-per-minute': '0',
})
const engine = openEngine(options.dataDir, options.seed, exitOnFatal)
const faults = createInjectedFailures()
const rateBudget = createRateBudget(options.integer('weight-per-minute', 0, 1_000_000_000))
const initial = {
  ...readRealism({ preset: options.realism.preset }, quiet),
  seed: options.realism.seed,
}
const history = createAccountHistory(
  engine.venue,
  () => longestLagMs(realismControl.current()),
  () => performance.now(),
)
engine.onApplied((command) => history.recordChanges(changedUsers(engine.venue, command)))
const applyRealism = (realism: Realism, before: Realism): void => {
  if (longestLagMs(realism) > 0) history.start()
  else history.stop()
  if (realism.weightPerMinute !== before.weightPerMinute) rateBudget.limit(realism.weightPerMinute)
  if ((engine.venue.state.settings.accountMode ?? 'default') !== realism.accountMode)
    engine.submit({ kind: 'settings', settings: { accountMode: realism.accountMode } })
}
const realismControl = createRealismControl(initial, applyRealism)
if (realismControl.isSet()) applyRealism(initial, quiet)
const api = createVenueApi(
  engine,
  createRealisticInfo(engine.venue, history, realismControl),
  () => realismControl.current().network,
)
const server = serve({ engine, api, faults, rateBudget })
const stream = openStream({ server, engine, api, faults, realismControl, history })

const rpcUrl = options.text('arbitrum-rpc')
const rpc = rpcUrl === undefined ? undefined : httpRpc(rpcUrl)
const bridge =
  rpc &&
  openBridge(engine, rpc, await createPayoutSender(rpc), options.integer('bridge-ms', 20, intervalMaxMs))

const control = serveControl({ engine, faults, rateBudget, stream, bridge, realismControl, history })
await runVenue({
  options,
  engine,
  server,
  control,
  stream,
  stopWork: () => bridge?.stop(),
  realismSeed: realismControl.current().seed,
})
