import { mkdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { useCompileCache } from '#world/compile-cache.ts'
import type { Rpc } from '#world/evm/rpc.ts'
import type { BridgeChain } from './bridge-worker.ts'
import type { Reads, Sender, WorldMoney } from './chain/chain-terms.ts'
import type { ChainPort } from './chain-port.ts'

useCompileCache()
const { rpcAt } = await import('#world/evm/rpc.ts')
const { listen } = await import('#world/venue-core/http.ts')
const { createInjectedFailures } = await import('#world/venue-core/injected-failures.ts')
const { startWorkLoop } = await import('#world/venue-core/work-loop.ts')
const { bridgeRoutes } = await import('./bridge.ts')
const { carryAll } = await import('./bridge-worker.ts')
const { createBuckets } = await import('./buckets.ts')
const { createChainIndex } = await import('./chain-index.ts')
const { ledgerPort } = await import('./chain-port.ts')
const { chainId } = await import('./chain/addresses.ts')
const { createReads } = await import('./chain/reads.ts')
const { createSender } = await import('./chain/sender.ts')
const { createWorldMoney } = await import('./chain/world-money.ts')
const { orderRoutes } = await import('./clob-orders.ts')
const { privateRoutes } = await import('./clob-private.ts')
const { publicRoutes } = await import('./clob-public.ts')
const { serveControl } = await import('./control.ts')
const { dataV1Routes } = await import('./data-v1.ts')
const { dataV2Routes } = await import('./data-v2.ts')
const { createFundsBook } = await import('./funds.ts')
const { cachedRoutes, gammaRoutes } = await import('./gamma.ts')
const { geoblockRoutes } = await import('./geoblock.ts')
const { openEngine } = await import('./machine.ts')
const { polygonPort } = await import('./polygon-port.ts')
const { prepareChain } = await import('./prepare-chain.ts')
const { createRealismControl, quiet, readRealism } = await import('./realism.ts')
const { relayerRoutes } = await import('./relayer.ts')
const { relayAll } = await import('./relay-worker.ts')
const { createResolver } = await import('./resolution.ts')
const { serve } = await import('./server.ts')
const { settleAllOnChain, settleAllOnLedger } = await import('./settlement.ts')
const { openStream } = await import('./stream.ts')

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string' },
    'compile-cache': { type: 'string' },
    port: { type: 'string', default: '0' },
    'control-port': { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    /** Of the world's chains, by their id. */
    'chain-ports': { type: 'string', default: '{}' },
    'tick-ms': { type: 'string', default: '1000' },
    'settle-ms': { type: 'string', default: '100' },
    'index-ms': { type: 'string', default: '500' },
    realism: { type: 'string', default: 'quiet' },
    'realism-seed': { type: 'string', default: '1' },
    'watch-stdin': { type: 'boolean', default: false },
  },
})

const integer = (name: keyof typeof values, min: number, max: number): number => {
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
const realism = createRealismControl({
  ...readRealism({ preset: values.realism }, quiet),
  seed: integer('realism-seed', 0, 2_147_483_647),
})

type Chain = {
  sender: Sender
  reads: Reads
  money: WorldMoney
  rpc: Rpc
  index: () => Promise<void>
}

const openChain = async (port: number): Promise<Chain> => {
  const rpc = rpcAt(port)
  const [sender, reads] = [createSender(rpc), createReads(rpc)]
  const money = createWorldMoney(rpc, sender)
  await prepareChain({ engine, rpc, sender, reads, money })
  return { sender, reads, money, rpc, index: createChainIndex(engine, rpc) }
}

const { [chainId]: polygonNode, ...otherNodes } = JSON.parse(values['chain-ports']) as Record<string, number>
const chain = polygonNode === undefined ? undefined : await openChain(polygonNode)
const port: ChainPort = chain ? polygonPort(chain.reads) : ledgerPort(engine.venue)

const onError = (error: Error): void => {
  process.stderr.write(`${error.stack}\n`)
}
const settle = chain
  ? () => settleAllOnChain({ engine, sender: chain.sender })
  : () => settleAllOnLedger(engine)
const settlement = startWorkLoop(settle, { everyMs: integer('settle-ms', 5, 600_000), onError })
const relay = chain && startWorkLoop(() => relayAll({ engine, realism, ...chain }), { everyMs: 100, onError })
const bridgeChains: BridgeChain[] = chain
  ? [{ id: String(chainId), rpc: chain.rpc, sender: chain.sender }]
  : []
for (const [id, rpc] of Object.entries(otherNodes).map(([name, port]) => [name, rpcAt(port)] as const))
  bridgeChains.push({ id, rpc, sender: createSender(rpc, Number(id)) })
const carrying = chain && startWorkLoop(() => carryAll(engine, bridgeChains), { everyMs: 250, onError })
const resolver = createResolver(engine, realism, chain?.sender)
const indexing =
  chain &&
  startWorkLoop(
    async () => {
      await chain.index()
      await resolver.autoRedeem()
    },
    { everyMs: integer('index-ms', 20, 600_000), onError },
  )

const orderDeps = {
  engine,
  realism,
  funds: createFundsBook(port, realism),
  chain: port,
  buckets: createBuckets(realism, engine.nowMs),
  onMatched: settlement.wake,
}
const { venue } = engine
const server = serve({
  engine,
  faults,
  realism,
  services: {
    clob: [...publicRoutes({ venue, realism }), ...privateRoutes(orderDeps), ...orderRoutes(orderDeps)],
    gamma: cachedRoutes(gammaRoutes(venue), () => realism.lagMs('gammaLag')),
    data: [...dataV1Routes({ venue, realism }), ...dataV2Routes({ venue, realism })],
    relayer: relayerRoutes({ engine, realism, reads: chain?.reads, wake: () => relay?.wake() }),
    bridge: bridgeRoutes(engine),
    geoblock: geoblockRoutes(realism),
  },
})
const stream = openStream({ server, engine, realism, faults, prefix: '/ws' })
const control = serveControl({ engine, faults, realism, stream, resolver, settlement, relay, chain })
// An idle client must not reuse a connection that the server is closing.
for (const listener of [server, control]) listener.keepAliveTimeout = 120_000
const listening = await listen(server, integer('port', 0, 65_535))
const controlPort = await listen(control, integer('control-port', 0, 65_535))

const ticking = setInterval(() => engine.submit({ kind: 'tick' }), integer('tick-ms', 20, 600_000))

let stopping = false
const stop = (): void => {
  if (stopping) return
  stopping = true
  clearInterval(ticking)
  for (const loop of [settlement, relay, carrying, indexing]) loop?.stop()
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
  `${JSON.stringify({ ready: true, port: listening, controlPort, realism: values.realism, seed: realism.current().seed })}\n`,
)
