import { join } from 'node:path'
import type { WorldClock } from './clock.ts'
import type { EvmNode } from './evm/node.ts'
import type { PresetName } from './failure-presets.ts'
import { failureInjector } from './injected-failures.ts'
import type { ListeningServer } from './listen.ts'
import { startProxy } from './proxy.ts'
import { createServiceNode, launchVenue, type ServiceNode, syncVenueTime } from './service-process.ts'

type Options = {
  dir: string
  clock: WorldClock
  /** The chain of its money. */
  polygon: EvmNode | undefined
  realism: PresetName
  /** Does not wake with a request. */
  isStopped: boolean
  log: (line: string) => void
}

const entry = join(import.meta.dirname, 'polymarket/process.ts')

/** The prediction market. */
export const predictionNode = (options: Options): ServiceNode => {
  const { dir, clock, polygon, realism, isStopped, log } = options
  const dataDir = join(dir, 'polymarket')
  let proxy: Promise<ListeningServer> | undefined

  /** The venue's own connection to the chain: no injected failure applies to it. */
  const openProxy = () => {
    proxy ??= startProxy({
      preferredPort: 0,
      injector: failureInjector(),
      target: () => polygon?.endpoint(),
      ...(polygon ? { recorder: polygon.recorder } : {}),
    })
    return proxy
  }

  const launch = async () => {
    await polygon?.start()
    const { port } = await openProxy()
    const args = ['--polygon-port', String(port), '--realism', realism]
    return launchVenue(clock, { entry, dataDir, args })
  }

  return createServiceNode({
    name: 'The prediction market',
    dataDir,
    isStopped,
    launch,
    syncTime: (controlPort) => syncVenueTime(clock, controlPort),
    close: async () => {
      await (await proxy)?.close()
    },
    log,
  })
}
