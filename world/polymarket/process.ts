import { useCompileCache } from '#world/compile-cache.ts'
import type { Rpc } from '#world/evm/rpc.ts'
import type { BridgeChain } from './bridge-worker.ts'
import type { Reads, Sender, WorldMoney } from './chain/chain-terms.ts'
import type { ChainPort } from './chain-port.ts'

useCompileCache()
const { rpcAt } = await import('#world/evm/rpc.ts')
const { exitOnFatal, intervalMaxMs, readVenueOptions, runVenue } = await import(
  '#world/venue-core/venue-process.ts'
)
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
const { cachedRoutes, contradictVersions, gammaRoutes } = await import('./gamma.ts')
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

const options = readVenueOptions({ 'chain-ports': '{}', 'settle-ms': '100', 'index-ms': '500' })
const engine = openEngine(options.dataDir, options.seed, exitOnFatal)
const faults = createInjectedFailures()
const realism = createRealismControl({
  ...readRealism({ preset: options.realism.preset }, quiet),
  seed: options.realism.seed,
})

type Chain = { sender: Sender; reads: Reads; money: WorldMoney; rpc: Rpc; index: () => Promise<void> }

const openChain = async (port: number): Promise<Chain> => {
  const rpc = rpcAt(port)
  const [sender, reads] = [createSender(rpc), createReads(rpc)]
  const money = createWorldMoney(rpc, sender)
  await prepareChain({ engine, rpc, sender, reads, money })
  return { sender, reads, money, rpc, index: createChainIndex(engine, rpc) }
}

/** The ports are by the id of their chain. */
const chainPorts = JSON.parse(options.text('chain-ports') ?? '{}') as Record<string, number>
const { [chainId]: polygonNode, ...otherNodes } = chainPorts
const chain = polygonNode === undefined ? undefined : await openChain(polygonNode)
const port: ChainPort = chain ? polygonPort(chain.reads) : ledgerPort(engine.venue)

const onError = (error: Error): void => {
  process.stderr.write(`${error.stack}\n`)
}
const settle = chain
  ? () => settleAllOnChain({ engine, sender: chain.sender })
  : () => settleAllOnLedger(engine)
const settlement = startWorkLoop(settle, { everyMs: options.integer('settle-ms', 5, intervalMaxMs), onError })
const relay = chain && startWorkLoop(() => relayAll({ engine, realism, ...chain }), { everyMs: 100, onError })
const bridgeChains: BridgeChain[] = chain
  ? [{ id: String(chainId), rpc: chain.rpc, sender: chain.sender }]
  : []
for (const [id, rpc] of Object.entries(otherNodes).map(([name, at]) => [name, rpcAt(at)] as const))
  bridgeChains.push({ id, rpc, sender: createSender(rpc, Number(id)) })
const carrying = chain && startWorkLoop(() => carryAll(engine, bridgeChains), { everyMs: 250, onError })
const resolver = createResolver(engine, realism, chain)
const indexing =
  chain &&
  startWorkLoop(
    async () => {
      await chain.index()
      await resolver.autoRedeem()
    },
    { everyMs: options.integer('index-ms', 20, intervalMaxMs), onError },
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
    gamma: cachedRoutes(contradictVersions(gammaRoutes(venue), realism), () => realism.lagMs('gammaLag')),
    data: [...dataV1Routes({ venue, realism }), ...dataV2Routes({ venue, realism })],
    relayer: relayerRoutes({ engine, realism, reads: chain?.reads, wake: () => relay?.wake() }),
    bridge: bridgeRoutes(engine),
    geoblock: geoblockRoutes(realism),
  },
})
const stream = openStream({ server, engine, realism, faults, prefix: '/ws' })
const control = serveControl({ engine, faults, realism, stream, resolver, settlement, relay, chain })
await runVenue({
  options,
  engine,
  server,
  control,
  stream,
  stopWork: () => {
    for (const loop of [settlement, relay, carrying, indexing]) loop?.stop()
  },
  realismSeed: realism.current().seed,
})
