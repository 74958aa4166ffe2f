import type { WorldClock } from './clock.ts'
import { predictionChain } from './evm/chains.ts'
import type { EvmNode } from './evm/node.ts'
import type { PresetName } from './failure-presets.ts'
import { failureInjector } from './injected-failures.ts'
import type { ListeningServer } from './listen.ts'
import { startProxy } from './proxy.ts'
import { requestControl, type ServiceNode, serviceNode } from './service-process.ts'

type Options = {
  dir: string
  clock: WorldClock
  /** The chain of its money, and those that its bridge reaches. */
  nodes: readonly EvmNode[]
  realism: PresetName
  isStopped: boolean
  log: (line: string) => void
}

/** The prediction market. */
export const predictionNode = ({ clock, nodes, realism, ...options }: Options): ServiceNode => {
  let ways: Promise<(readonly [id: string, way: ListeningServer])[]> | undefined

  /** The venue's own ways to the chains: no injected failure applies to them. */
  const openWays = () => {
    const injector = failureInjector()
    ways ??= Promise.all(
      nodes.map(async ({ chain, endpoint: target, recorder }) => {
        const way = await startProxy({ preferredPort: 0, injector, target, recorder })
        return [chain.id, way] as const
      }),
    )
    return ways
  }

  return serviceNode({
    ...options,
    name: 'polymarket',
    title: 'The prediction market',
    args: async () => {
      await nodes.find(({ chain }) => chain.id === predictionChain)?.start()
      const ports = (await openWays()).map(([id, way]) => [id, way.port] as const)
      return ['--chain-ports', JSON.stringify(Object.fromEntries(ports)), '--realism', realism]
    },
    /** A tick returns the venue's time, which lags behind an advance of the world's clock. */
    sync: async (controlPort) => {
      const { reply } = await requestControl(controlPort, 'POST', '/tick')
      const behindMs = Math.round((clock.nowMs() - (reply as { nowMs: number }).nowMs) / 1000) * 1000
      if (behindMs > 0) await requestControl(controlPort, 'POST', '/advance', { ms: behindMs })
    },
    close: async () => {
      await Promise.all(((await ways) ?? []).map(([, way]) => way.close()))
    },
  })
}
