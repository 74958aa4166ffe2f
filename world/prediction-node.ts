import { join } from 'node:path'
import type { WorldClock } from './clock.ts'
import { predictionChain } from './evm/chains.ts'
import type { EvmNode } from './evm/node.ts'
import type { PresetName } from './failure-presets.ts'
import { failureInjector } from './injected-failures.ts'
import type { ListeningServer } from './listen.ts'
import { startProxy } from './proxy.ts'
import { createServiceNode, launchVenue, type ServiceNode, syncVenueTime } from './service-process.ts'

type Options = {
  dir: string
  clock: WorldClock
  /** The chain of its money, and those that its bridge reaches. */
  nodes: readonly EvmNode[]
  realism: PresetName
  /** Does not wake with a request. */
  isStopped: boolean
  log: (line: string) => void
}

const entry = join(import.meta.dirname, 'polymarket/process.ts')

/** The prediction market. */
export const predictionNode = (options: Options): ServiceNode => {
  const { dir, clock, nodes, realism, isStopped, log } = options
  const dataDir = join(dir, 'polymarket')
  let proxies: Promise<(readonly [id: string, proxy: ListeningServer])[]> | undefined

  /** The venue's own connections to the chains: no injected failure applies to them. */
  const openProxies = () => {
    const injector = failureInjector()
    proxies ??= Promise.all(
      nodes.map(async ({ chain, endpoint: target, recorder }) => {
        const proxy = await startProxy({ preferredPort: 0, injector, target, recorder })
        return [chain.id, proxy] as const
      }),
    )
    return proxies
  }

  const launch = async () => {
    await nodes.find(({ chain }) => chain.id === predictionChain)?.start()
    const ports = (await openProxies()).map(([id, { port }]) => [id, port] as const)
    const args = ['--chain-ports', JSON.stringify(Object.fromEntries(ports)), '--realism', realism]
    return launchVenue(clock, { entry, dataDir, args })
  }

  return createServiceNode({
    name: 'The prediction market',
    dataDir,
    isStopped,
    launch,
    syncTime: (controlPort) => syncVenueTime(clock, controlPort),
    close: async () => {
      await Promise.all(((await proxies) ?? []).map(([, proxy]) => proxy.close()))
    },
    log,
  })
}
