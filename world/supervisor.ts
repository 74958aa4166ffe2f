import { mkdir, readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { endOrphan } from './child.ts'
import { worldClock } from './clock.ts'
import { controlRoutes, type Providers, presetTargets, providerNames } from './control.ts'
import { contractsOf, sponsors, venueChain, worldChains } from './evm/chains.ts'
import { forkRejectionReason } from './evm/fork-guard.ts'
import { type EvmNode, evmNode } from './evm/node.ts'
import { evmRealism } from './evm/realism.ts'
import { recordedSocket } from './evm/recorded-socket.ts'
import type { PresetName } from './failure-presets.ts'
import { solanaId } from './faucet.ts'
import { localImageServer } from './images/images.ts'
import { type FailureInjector, failureInjector } from './injected-failures.ts'
import { type ListeningServer, listen } from './listen.ts'
import { lockDirectory } from './lock.ts'
import { localModelServer } from './model/model.ts'
import { predictionNode } from './prediction-node.ts'
import { priceBook } from './prices/book.ts'
import { priceResponder } from './prices/price-responder.ts'
import { startPrices } from './prices/server.ts'
import { type Endpoint, startProxy } from './proxy.ts'
import { createRouter } from './router.ts'
import { solanaRealism } from './solana/realism.ts'
import { type SolanaNode, solanaNode } from './solana-node.ts'
import { startSolanaProxies } from './solana-proxies.ts'
import { solverNode } from './solver-node.ts'
import { openStateFile, type StateFile } from './state-file.ts'
import { localPaymentServer } from './stripe/stripe.ts'
import { type TokenJudges, tokenJudges } from './token-judges.ts'
import { urlsOf } from './urls.ts'
import { type VenueNode, venueNode } from './venue-node.ts'
import type { WorldUrls } from './world.ts'

type Options = {
  dataDir: string
  port: number
  automine: boolean
  realism: PresetName
  /** Chains by their id, `solana`, `hyperliquid`, `polymarket`, `solver` and `lifi`; undefined: all of them. */
  only?: readonly string[] | undefined
  /** Starts also what otherwise starts with its first request. */
  isEager: boolean
  log: (line: string) => void
}
type RunningWorld = { urls: WorldUrls; worldId: string; close: () => Promise<void> }

/** Services that wait for a request start then, so that the start of the world does not wait for them. */
const providerWakeMs = 1_500

const services = [
  'hyperliquid',
  ...providerNames,
  'honeypot',
  'rugcheck',
  'prices',
  'model',
  'images',
  'stripe',
]

const endOrphans = async (dataDir: string) => {
  const files = (await readdir(dataDir)).filter((name) => name.endsWith('.pid'))
  const end = async (name: string) => {
    const path = join(dataDir, name)
    await endOrphan(path, Number(await readFile(path, 'utf8')), `${dataDir}/`)
  }
  await Promise.all(files.map(end))
}

const seedLazily: Parameters<typeof evmNode>[0]['seed'] = async (rpc, chain) => {
  const { seedChain } = await import('./evm/seed.ts')
  await seedChain(rpc, chain)
}

const pricedSolanaTokens = async (solana: SolanaNode) => {
  const tokens = solana.port() === undefined ? [] : await solana.tokens()
  return new Map(tokens.map(({ mint, symbol, decimals }) => [`solana:${mint}`, { symbol, decimals }]))
}

/** The Solana process serves the world's own routes beside its JSON-RPC; they are not for clients. */
const rejectNonRpc = ({ url = '/' }: IncomingMessage) =>
  url === '/' || url.startsWith('/?') ? undefined : `There is nothing at ${url}.`

const loopbackEndpoint = (port: () => number | undefined) => (): Endpoint | undefined => {
  const found = port()
  return found === undefined ? undefined : { host: '127.0.0.1', port: found }
}

type ProxyTargets = {
  injectors: ReadonlyMap<string, FailureInjector>
  nodes: readonly EvmNode[]
  solana: SolanaNode
  venue: VenueNode
  providers: Providers
  judges: TokenJudges
  model: ReturnType<typeof localModelServer>
  images: ReturnType<typeof localImageServer>
  payments: ReturnType<typeof localPaymentServer>
}

/** Every server for clients, without the control port. */
const openProxies = async (
  stateFile: StateFile,
  { injectors, nodes, solana, venue, providers, judges, model, images, payments }: ProxyTargets,
  priceParts: Pick<Parameters<typeof startPrices>[0], 'book' | 'respondPrices'>,
) => {
  const injectorFor = (target: string) => injectors.get(target) ?? failureInjector()
  const preferredPort = (target: string) => stateFile.value.ports[target] ?? 0
  const evm = nodes.map(async (node) => {
    const target = `evm:${node.chain.id}`
    const injector = injectorFor(target)
    const beforeRequest = node.mineIfStale
    const realism = evmRealism(node, injector)
    return [
      target,
      await startProxy({
        preferredPort: preferredPort(target),
        injector,
        target: node.endpoint,
        beforeRequest,
        rejectionReason: forkRejectionReason,
        realism,
        recorder: node.recorder,
        connectSocket: recordedSocket(node.recorder),
      }),
    ] as const
  })
  const rest = [
    startSolanaProxies({
      preferredPort: preferredPort('solana'),
      injector: injectorFor('solana'),
      target: loopbackEndpoint(solana.port),
      rejectionReason: rejectNonRpc,
      realism: solanaRealism(),
    }).then((proxy) => ['solana', proxy] as const),
    startProxy({
      preferredPort: preferredPort('hyperliquid'),
      injector: injectorFor('hyperliquid'),
      target: loopbackEndpoint(venue.port),
    }).then((proxy) => ['hyperliquid', proxy] as const),
    ...providerNames.map(async (name) => {
      const { port, wake } = providers[name]
      const proxy = await startProxy({
        preferredPort: preferredPort(name),
        injector: injectorFor(name),
        target: loopbackEndpoint(port),
        beforeRequest: wake,
      })
      return [name, proxy] as const
    }),
    judges
      .startHoneypot({ preferredPort: preferredPort('honeypot'), injector: injectorFor('honeypot') })
      .then((server) => ['honeypot', server] as const),
    judges
      .startRugCheck({ preferredPort: preferredPort('rugcheck'), injector: injectorFor('rugcheck') })
      .then((server) => ['rugcheck', server] as const),
    model
      .start({ preferredPort: preferredPort('model'), injector: injectorFor('model') })
      .then((server) => ['model', server] as const),
    images
      .start({ preferredPort: preferredPort('images'), injector: injectorFor('images') })
      .then((server) => ['images', server] as const),
    payments
      .start({ preferredPort: preferredPort('stripe'), injector: injectorFor('stripe') })
      .then((server) => ['stripe', server] as const),
    startPrices({
      ...priceParts,
      preferredPort: preferredPort('prices'),
      injector: injectorFor('prices'),
    }).then((server) => ['prices', server] as const),
  ]
  return new Map<string, ListeningServer>(await Promise.all([...evm, ...rest]))
}

const closeProviders = async (providers: Providers) => {
  for (const provider of Object.values(providers)) {
    await provider.stop('SIGTERM')
    await provider.close()
  }
}

/** Open requests of an earlier run continue; otherwise the first request starts a provider. */
const wakeProviders = (providers: Providers, { isEager }: { isEager: boolean }) => {
  for (const provider of Object.values(providers))
    if (isEager || provider.hasState())
      setTimeout(() => provider.wake()?.catch(() => {}), providerWakeMs).unref()
}

export const supervise = async (options: Options): Promise<RunningWorld> => {
  const { dataDir, port, automine, realism, only, isEager, log } = options
  const isWanted = (part: string) => only?.includes(part) ?? true
  await mkdir(dataDir, { recursive: true })
  const release = await lockDirectory(dataDir)
  await endOrphans(dataDir)
  const stateFile = await openStateFile(dataDir)
  const clock = worldClock(stateFile.value.clock_offset_seconds)
  const book = priceBook(stateFile.value.prices)
  const solana = solanaNode({ dir: dataDir, clock, log })
  const nodes = worldChains.map((chain) =>
    evmNode({ chain, dir: dataDir, clock, automine, seed: seedLazily, log }),
  )
  const arbitrum = nodes.find(({ chain }) => chain.id === venueChain)
  let bridgePort: number | undefined
  const arbitrumUrl = () => `http://127.0.0.1:${bridgePort}`
  const venue = venueNode({ dir: dataDir, clock, arbitrumUrl, realism, log })
  const targets = [...worldChains.map(({ id }) => `evm:${id}`), 'solana', ...services]
  const injectors = new Map(targets.map((target) => [target, failureInjector()]))
  for (const [index, target] of presetTargets.entries()) injectors.get(target)?.usePreset(realism, index + 1)
  const respondPrices = priceResponder({
    book,
    nowMs: clock.nowMs,
    solanaTokens: () => pricedSolanaTokens(solana),
  })

  let urls: WorldUrls | undefined
  const shared = { dir: dataDir, clock, nodes, solana, urls: () => urls, realism, log }
  const openSolver = (name: 'solver' | 'lifi') => solverNode({ ...shared, name, isStopped: !isWanted(name) })
  const providers: Providers = {
    solver: openSolver('solver'),
    lifi: openSolver('lifi'),
    polymarket: predictionNode({ ...shared, isStopped: !isWanted('polymarket') }),
  }
  const manifest = async () => ({
    world_id: stateFile.value.world_id,
    urls,
    contracts: Object.fromEntries(worldChains.map((chain) => [chain.id, contractsOf(chain)])),
    sponsors,
    tokens: {
      ...Object.fromEntries(worldChains.map(({ id, tokens }) => [id, tokens])),
      [solanaId]: solana.port() === undefined ? [] : await solana.tokens(),
    },
    running: Object.fromEntries([
      ...nodes.map((node) => [node.chain.id, node.endpoint() !== undefined]),
      [solanaId, solana.port() !== undefined],
      ['hyperliquid', venue.port() !== undefined],
      ...Object.entries(providers).map(([name, { port }]) => [name, port() !== undefined] as const),
    ]),
  })
  const judges = tokenJudges({ nodes, solana, nowMs: clock.nowMs })
  const model = localModelServer(clock.nowMs)
  const images = localImageServer(clock.nowMs)
  const payments = localPaymentServer({ dir: dataDir, nowMs: clock.nowMs })
  const routes = [
    ...controlRoutes({
      stateFile,
      clock,
      injectors,
      nodes,
      solana,
      venue,
      providers,
      book,
      manifest,
    }),
    ...judges.routes,
    ...model.routes,
    ...images.routes,
    ...payments.routes,
  ]

  const opened: ListeningServer[] = []
  const close = async () => {
    await Promise.all(opened.map((each) => each.close()))
    await closeProviders(providers)
    await venue.stop('SIGTERM')
    await Promise.all([...nodes.map((node) => node.stop('SIGTERM')), solana.stop('SIGTERM')])
    await stateFile.save()
    await release()
  }
  try {
    const began = performance.now()
    const controlPort =
      port === 0 ? { preferredPort: stateFile.value.ports.control ?? 0 } : { requiredPort: port }
    const starts = nodes.filter(({ chain }) => isWanted(chain.id)).map((node) => node.start())
    if (isWanted('solana')) starts.push(solana.start())
    // A failed start is reported below; until then it must not count as unhandled.
    for (const start of starts) start.catch(() => {})
    const control = await listen(createRouter(routes), controlPort)
    opened.push(control)
    const parts = { injectors, nodes, solana, venue, providers, judges, model, images, payments }
    const proxies = await openProxies(stateFile, parts, { book, respondPrices })
    opened.push(...proxies.values())
    // The venue's own connection to the chain: no injected failure applies to its polls, and they cause no saves of an
    // idle chain.
    const bridgeProxy = await startProxy({
      preferredPort: 0,
      injector: failureInjector(),
      target: () => arbitrum?.endpoint(),
      ...(arbitrum ? { recorder: arbitrum.recorder } : {}),
    })
    opened.push(bridgeProxy)
    bridgePort = bridgeProxy.port
    if (isWanted('hyperliquid'))
      starts.push((arbitrum?.start() ?? Promise.resolve()).then(() => venue.start()))
    starts.at(-1)?.catch(() => {})
    const ports = Object.fromEntries([...proxies].map(([target, proxy]) => [target, proxy.port]))
    urls = urlsOf(ports, control.port)
    stateFile.value.ports = { ...ports, control: control.port }
    await Promise.all([...starts, stateFile.save()])
    wakeProviders(providers, { isEager })
    log(`The world is up in ${Math.round(performance.now() - began)} ms.`)
    return { urls, worldId: stateFile.value.world_id, close }
  } catch (error) {
    await close()
    throw error
  }
}
