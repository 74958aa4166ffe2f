import { isIP } from 'node:net'
import { join } from 'node:path'
import type { UpstreamUrls } from '#compose/upstream-urls.ts'
import { type Config, usesWorld } from '#config.ts'
import { embeddedPostgres } from '#store/embedded-server.ts'
import type { WorldUrls } from '#world/world.ts'
import type { Stop } from './stop-signals.ts'

export class WorldRefusal extends Error {}

type Progress = (line: string) => void

export async function openDatabaseEndpoint(
  config: Config,
  progress: Progress,
  stop?: Stop,
): Promise<{ url: string } & AsyncDisposable> {
  if (config.DATABASE_URL) return { url: config.DATABASE_URL, [Symbol.asyncDispose]: async () => {} }
  const server = await embeddedPostgres({ dataDir: config.DATA_DIR, progress, ...stop })
  return { url: server.url, [Symbol.asyncDispose]: () => server.close() }
}

/** The services of the prediction market have fixed names below its domain, or paths at an address without one. */
function polymarketUrls(domain: string | undefined): UpstreamUrls['polymarket'] {
  if (domain === undefined) return undefined
  const { protocol, host, hostname } = new URL(domain)
  const wsProtocol = protocol === 'https:' ? 'wss' : 'ws'
  if (isIP(hostname) > 0) {
    const paths = ['clob', 'gamma', 'data', 'relayer', 'bridge', 'geoblock'] as const
    const services = Object.fromEntries(paths.map((path) => [path, `${domain}/${path}`]))
    return { ...(services as Record<(typeof paths)[number], string>), socket: `${wsProtocol}://${host}/ws` }
  }
  const at = (name: string) => `${protocol}//${name}.${host}`
  return {
    clob: at('clob'),
    gamma: at('gamma-api'),
    data: at('data-api'),
    relayer: at('relayer-v2'),
    bridge: at('bridge'),
    geoblock: domain,
    socket: `${wsProtocol}://ws-subscriptions-clob.${host}/ws`,
  }
}

/** Starts a local world for the upstreams that are `local`; the others are reached by their URL. */
export async function openUpstreamEndpoints(
  config: Config,
  progress: Progress,
  stop?: Stop,
): Promise<{ urls: UpstreamUrls } & AsyncDisposable> {
  const resolveUrl = (value: string | undefined, local: string | undefined) =>
    value === 'local' ? local : value
  const resolveUrls = (
    local: WorldUrls | undefined,
    { control = config.WORLD_URL, worldId }: { control?: string | undefined; worldId?: string } = {},
  ): UpstreamUrls => ({
    evm: {
      '1': resolveUrl(config.ETHEREUM_RPC_URL, local?.evm['1']),
      '8453': resolveUrl(config.BASE_RPC_URL, local?.evm['8453']),
      '42161': resolveUrl(config.ARBITRUM_RPC_URL, local?.evm['42161']),
      '421614': config.HYPERLIQUID_NETWORK === 'testnet' ? config.ARBITRUM_SEPOLIA_RPC_URL : undefined,
      '137': resolveUrl(config.POLYGON_RPC_URL, local?.evm['137']),
    },
    solana: resolveUrl(config.SOLANA_RPC_URL, local?.solana),
    hyperliquid: resolveUrl(config.HYPERLIQUID_URL, local?.hyperliquid),
    polymarket: config.POLYMARKET_URL === 'local' ? local?.polymarket : polymarketUrls(config.POLYMARKET_URL),
    relay: resolveUrl(config.RELAY_URL, local?.solver),
    honeypot: resolveUrl(config.HONEYPOT_URL, local?.honeypot),
    rugcheck: resolveUrl(config.RUGCHECK_URL, local?.rugcheck),
    lifi: resolveUrl(config.LIFI_URL, local?.lifi),
    prices: resolveUrl(config.PRICES_URL, local?.prices),
    coinbase: resolveUrl(config.COINBASE_URL, local?.prices),
    model: resolveUrl(config.MODEL_URL, local?.model),
    images: resolveUrl(config.IMAGES_URL, local?.images),
    stripe: resolveUrl(config.STRIPE_URL, local?.stripe),
    faucet: resolveUrl(config.FAUCET_URL, local?.faucet),
    ...(control && { control }),
    ...(worldId && { worldId }),
  })
  if (!usesWorld(config)) return { urls: resolveUrls(undefined), [Symbol.asyncDispose]: async () => {} }
  const { startWorld } = await import('#world/world.ts')
  const options = {
    dataDir: join(config.DATA_DIR, 'world'),
    port: config.WORLD_PORT,
    realism: config.WORLD_REALISM,
    // Only the launcher of `npm start` gives this process an IPC channel. A person who runs it is likely to try a swap
    // soon, so the world starts the nodes of its swap providers before the first request.
    isEager: process.channel !== undefined,
    progress,
    ...stop,
  }
  const world = await startWorld(options).catch((cause: Error) => {
    throw new WorldRefusal(cause.message, { cause })
  })
  return {
    urls: resolveUrls(world.urls, { control: world.urls.control, worldId: world.worldId }),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}
