import { mkdir, readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { endOrphan } from './child.ts'
import { worldClock } from './clock.ts'
import { controlRoutes, presetTargets } from './control.ts'
import { door } from './door.ts'
import { type ChainId, contractsOf, sponsors, venueChain, worldChains } from './evm/chains.ts'
import { type EvmNode, evmNode } from './evm/node.ts'
import { reachesOut } from './evm/outward.ts'
import { evmRealism } from './evm/realism.ts'
import { recordedSocket } from './evm/recorded-socket.ts'
import { solanaId } from './faucet.ts'
import { type FaultDial, faultDial } from './faults.ts'
import { type Listening, listen } from './listen.ts'
import { lockDirectory } from './lock.ts'
import { type MemoryFile, openMemory } from './memory.ts'
import type { PresetName } from './presets.ts'
import { priceBook } from './prices/book.ts'
import { priceAnswers } from './prices/prices.ts'
import { startPrices } from './prices/server.ts'
import { type Place, startProxy } from './proxy.ts'
import { solanaRealism } from './solana/realism.ts'
import { startSolanaProxies } from './solana-front.ts'
import { type SolanaNode, solanaNode } from './solana-node.ts'
import { type VenueNode, venueNode } from './venue-node.ts'
import type { WorldUrls } from './world.ts'

type Options = {
  dataDir: string
  port: number
  automine: boolean
  realism: PresetName
  /** Chains by their id, `solana` and `hyperliquid`; undefined: all of them. */
  only?: readonly string[] | undefined
  log: (line: string) => void
}
type Running = { urls: WorldUrls; worldId: string; close: () => Promise<void> }

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

const solanaPriced = async (solana: SolanaNode) => {
  const tokens = solana.port() === undefined ? [] : await solana.tokens()
  return new Map(tokens.map(({ mint, symbol, decimals }) => [`solana:${mint}`, { symbol, decimals }]))
}

/** The Solana process serves the world's own routes beside its JSON-RPC; they are not for clients. */
const onlyRpc = ({ url = '/' }: IncomingMessage) =>
  url === '/' || url.startsWith('/?') ? undefined : `There is nothing at ${url}.`

const onLoopback = (port: () => number | undefined) => (): Place | undefined => {
  const found = port()
  return found === undefined ? undefined : { host: '127.0.0.1', port: found }
}

type Fronts = {
  dials: ReadonlyMap<string, FaultDial>
  nodes: readonly EvmNode[]
  solana: SolanaNode
  venue: VenueNode
}

/** Everything that the outside may talk to, except the control port. */
const openFronts = async (
  memory: MemoryFile,
  { dials, nodes, solana, venue }: Fronts,
  prices: Parameters<typeof startPrices>[0]['answers'],
) => {
  const dial = (target: string) => dials.get(target) ?? faultDial()
  const wish = (target: string) => memory.value.ports[target] ?? 0
  const evm = nodes.map(async (node) => {
    const target = `evm:${node.chain.id}`
    const before = node.touch
    const realism = evmRealism(node)
    return [
      target,
      await startProxy({
        wish: wish(target),
        dial: dial(target),
        target: node.place,
        before,
        refuses: reachesOut,
        realism,
        records: node.recorder,
        join: recordedSocket(node.recorder),
      }),
    ] as const
  })
  const rest = [
    startSolanaProxies({
      wish: wish('solana'),
      dial: dial('solana'),
      target: onLoopback(solana.port),
      refuses: onlyRpc,
      realism: solanaRealism(),
    }).then((proxy) => ['solana', proxy] as const),
    startProxy({ wish: wish('hyperliquid'), dial: dial('hyperliquid'), target: onLoopback(venue.port) }).then(
      (proxy) => ['hyperliquid', proxy] as const,
    ),
    startPrices({ wish: wish('prices'), dial: dial('prices'), answers: prices }).then(
      (server) => ['prices', server] as const,
    ),
  ]
  return new Map<string, Listening>(await Promise.all([...evm, ...rest]))
}

const urlsOf = (ports: Record<string, number>, controlPort: number): WorldUrls => {
  const url = (port: number | undefined) => `http://127.0.0.1:${port}`
  const evm = Object.fromEntries(worldChains.map(({ id }) => [id, url(ports[`evm:${id}`])]))
  const control = url(controlPort)
  return {
    evm: evm as Record<ChainId, string>,
    solana: url(ports.solana),
    hyperliquid: url(ports.hyperliquid),
    prices: url(ports.prices),
    faucet: `${control}/faucet`,
    control,
  }
}

export const supervise = async (options: Options): Promise<Running> => {
  const { dataDir, port, automine, realism, only, log } = options
  const isWanted = (part: string) => only?.includes(part) ?? true
  await mkdir(dataDir, { recursive: true })
  const release = await lockDirectory(dataDir)
  await endOrphans(dataDir)
  const memory = await openMemory(dataDir)
  const clock = worldClock(memory.value.clock_offset_seconds)
  const book = priceBook(memory.value.prices)
  const solana = solanaNode({ dir: dataDir, clock, log })
  const nodes = worldChains.map((chain) =>
    evmNode({ chain, dir: dataDir, clock, automine, seed: seedLazily, log }),
  )
  const arbitrum = nodes.find(({ chain }) => chain.id === venueChain)
  let bridgePort: number | undefined
  const arbitrumUrl = () => `http://127.0.0.1:${bridgePort}`
  const venue = venueNode({ dir: dataDir, clock, arbitrumUrl, realism, log })
  const targets = [...worldChains.map(({ id }) => `evm:${id}`), 'solana', 'hyperliquid', 'prices']
  const dials = new Map(targets.map((target) => [target, faultDial()]))
  for (const [index, target] of presetTargets.entries()) dials.get(target)?.usePreset(realism, index + 1)
  const answers = priceAnswers({ book, nowMs: clock.nowMs, solanaTokens: () => solanaPriced(solana) })

  let urls: WorldUrls | undefined
  const manifest = async () => ({
    world_id: memory.value.world_id,
    urls,
    contracts: Object.fromEntries(worldChains.map((chain) => [chain.id, contractsOf(chain)])),
    sponsors,
    tokens: {
      ...Object.fromEntries(worldChains.map(({ id, tokens }) => [id, tokens])),
      [solanaId]: solana.port() === undefined ? [] : await solana.tokens(),
    },
    running: Object.fromEntries([
      ...nodes.map((node) => [node.chain.id, node.place() !== undefined]),
      [solanaId, solana.port() !== undefined],
      ['hyperliquid', venue.port() !== undefined],
    ]),
  })
  const routes = controlRoutes({ memory, clock, dials, nodes, solana, venue, book, manifest })

  const opened: Listening[] = []
  const close = async () => {
    await Promise.all(opened.map((each) => each.close()))
    await venue.stop('SIGTERM')
    await Promise.all([...nodes.map((node) => node.stop('SIGTERM')), solana.stop('SIGTERM')])
    await memory.save()
    await release()
  }
  try {
    const began = performance.now()
    const wish = port === 0 ? { wish: memory.value.ports.control ?? 0 } : { demand: port }
    const starts = nodes.filter(({ chain }) => isWanted(chain.id)).map((node) => node.start())
    if (isWanted('solana')) starts.push(solana.start())
    // A failed start is reported below; until then it must not count as unhandled.
    for (const start of starts) start.catch(() => {})
    const control = await listen(door(routes), wish)
    opened.push(control)
    const fronts = await openFronts(memory, { dials, nodes, solana, venue }, answers)
    opened.push(...fronts.values())
    // The venue's own line to the chain: its polling neither meets faults nor keeps an idle chain saving.
    const line = await startProxy({
      wish: 0,
      dial: faultDial(),
      target: () => arbitrum?.place(),
      ...(arbitrum ? { records: arbitrum.recorder } : {}),
    })
    opened.push(line)
    bridgePort = line.port
    if (isWanted('hyperliquid')) starts.push((arbitrum?.start() ?? Promise.resolve()).then(venue.start))
    starts.at(-1)?.catch(() => {})
    const ports = Object.fromEntries([...fronts].map(([target, front]) => [target, front.port]))
    urls = urlsOf(ports, control.port)
    memory.value.ports = { ...ports, control: control.port }
    await Promise.all([...starts, memory.save()])
    log(`The world is up in ${Math.round(performance.now() - began)} ms.`)
    return { urls, worldId: memory.value.world_id, close }
  } catch (error) {
    await close()
    throw error
  }
}
