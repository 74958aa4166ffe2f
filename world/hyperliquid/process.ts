import { mkdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
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
const { listen } = await import('#world/venue-core/http.ts')
const { serve } = await import('./server.ts')
const { openStream } = await import('./stream.ts')
const { createRateBudget } = await import('./rate-budget.ts')

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string' },
    'compile-cache': { type: 'string' },
    port: { type: 'string', default: '0' },
    'control-port': { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    'arbitrum-rpc': { type: 'string' },
    'tick-ms': { type: 'string', default: '1000' },
    'bridge-ms': { type: 'string', default: '500' },
    'weight-per-minute': { type: 'string', default: '0' },
    realism: { type: 'string', default: 'quiet' },
    'realism-seed': { type: 'string', default: '1' },
    'watch-stdin': { type: 'boolean', default: false },
  },
})

type Numeric =
  | 'port'
  | 'control-port'
  | 'seed'
  | 'tick-ms'
  | 'bridge-ms'
  | 'weight-per-minute'
  | 'realism-seed'

const integer = (name: Numeric, min: number, max: number): number => {
  const value = Number(values[name])
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new Error(`--${name} must be ${min} to ${max}`)
}

const dataDir = values['data-dir']
if (dataDir === undefined) throw new Error('--data-dir is required')
mkdirSync(dataDir, { recursive: true })

const onFatal = (error: unknown): never => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  process.exit(70)
}
const engine = openEngine(dataDir, integer('seed', 0, 2_147_483_647), onFatal)
const faults = createInjectedFailures()
const rateBudget = createRateBudget(integer('weight-per-minute', 0, 1_000_000_000))
const initial = {
  ...readRealism({ preset: values.realism }, quiet),
  seed: integer('realism-seed', 0, 2_147_483_647),
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

const rpcUrl = values['arbitrum-rpc']
const rpc = rpcUrl === undefined ? undefined : httpRpc(rpcUrl)
const bridge =
  rpc && openBridge(engine, rpc, await createPayoutSender(rpc), integer('bridge-ms', 20, 600_000))

const control = serveControl({ engine, faults, rateBudget, stream, bridge, realismControl, history })
// An idle client must not reuse a connection that the server is closing.
for (const listener of [server, control]) listener.keepAliveTimeout = 120_000
const port = await listen(server, integer('port', 0, 65_535))
const controlPort = await listen(control, integer('control-port', 0, 65_535))

const ticking = setInterval(() => engine.submit({ kind: 'tick' }), integer('tick-ms', 20, 600_000))

let stopping = false
const stop = (): void => {
  if (stopping) return
  stopping = true
  clearInterval(ticking)
  bridge?.stop()
  stream.close()
  for (const listener of [server, control]) {
    listener.close()
    listener.closeAllConnections()
  }
  engine.close()
  process.exit(0)
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
if (values['watch-stdin']) process.stdin.once('end', stop).once('close', stop).resume()

process.stdout.write(
  `${JSON.stringify({ ready: true, port, controlPort, realism: values.realism, seed: realismControl.current().seed })}\n`,
)
