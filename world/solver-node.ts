import { join } from 'node:path'
import type { WorldClock } from './clock.ts'
import type { EvmNode } from './evm/node.ts'
import type { PresetName } from './failure-presets.ts'
import { failureInjector } from './injected-failures.ts'
import type { ListeningServer } from './listen.ts'
import { startProxy } from './proxy.ts'
import { createServiceNode, launchService, requestControl, type ServiceNode } from './service-process.ts'
import type { SolanaNode } from './solana-node.ts'
import type { Endpoints } from './solver/connections.ts'
import type { WorldUrls } from './world.ts'

type Options = {
  name: 'solver' | 'lifi'
  dir: string
  clock: WorldClock
  nodes: readonly EvmNode[]
  solana: SolanaNode
  /** Known once every server listens. */
  urls: () => WorldUrls | undefined
  realism: PresetName
  /** Does not wake with a request. */
  isStopped: boolean
  log: (line: string) => void
}

/** The solver's own way to the chains: no injected failure applies to it. They open with its first start. */
const openWays = async ({ nodes, solana }: Options) => {
  const injector = failureInjector()
  const evm = nodes.map(async (node) => {
    const { endpoint: target, recorder } = node
    return [node.chain.id, await startProxy({ preferredPort: 0, injector, target, recorder })] as const
  })
  const target = () => {
    const port = solana.port()
    return port === undefined ? undefined : { host: '127.0.0.1', port }
  }
  return {
    solana: await startProxy({ preferredPort: 0, injector, target }),
    evm: new Map(await Promise.all(evm)),
  }
}

/** A provider of cross-chain swaps. */
export const solverNode = (options: Options): ServiceNode => {
  const { name, dir, clock, urls, realism, isStopped, log } = options
  const entry = join(import.meta.dirname, name, 'process.ts')
  const dataDir = join(dir, name)
  let ways: ReturnType<typeof openWays> | undefined

  const endpoints = async (): Promise<Endpoints> => {
    ways ??= openWays(options)
    const { evm, solana } = await ways
    const known = urls()
    if (!known) throw new Error('The world is still starting.')
    const evmEndpoints = [...evm].map(([id, { port }]) => [id, { port, url: known.evm[id] }] as const)
    return {
      evm: Object.fromEntries(evmEndpoints),
      solana: { port: solana.port, url: known.solana },
      controlUrl: known.control,
    }
  }

  const launch = async () => {
    const args = [
      '--endpoints',
      JSON.stringify(await endpoints()),
      '--clock-offset-seconds',
      String(clock.offsetSeconds()),
      '--realism',
      realism,
    ]
    return launchService({ entry, dataDir, args })
  }

  return createServiceNode({
    name: `The ${name}`,
    dataDir,
    isStopped,
    launch,
    syncTime: (controlPort) =>
      requestControl(controlPort, 'POST', '/clock', { offset_seconds: clock.offsetSeconds() }),
    close: async () => {
      const opened: ListeningServer[] = []
      if (ways) opened.push((await ways).solana, ...(await ways).evm.values())
      await Promise.all(opened.map((each) => each.close()))
    },
    log,
  })
}
