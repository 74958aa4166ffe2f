import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startChild } from './child.ts'
import type { WorldClock } from './clock.ts'
import { compileCacheArgs } from './compile-cache.ts'
import { predictionChain } from './evm/chains.ts'
import type { EvmNode } from './evm/node.ts'
import type { PresetName } from './failure-presets.ts'
import { failureInjector } from './injected-failures.ts'
import type { ListeningServer } from './listen.ts'
import { nodeFlags } from './node-flags.ts'
import { startProxy } from './proxy.ts'
import { createRestartable } from './restartable.ts'
import { parseReady, requestControl, type ServiceNode } from './service-process.ts'

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
  const { dir, clock, nodes, realism, log } = options
  const polygon = nodes.find(({ chain }) => chain.id === predictionChain)
  const dataDir = join(dir, 'polymarket')
  let isStopped = options.isStopped
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

  /** A tick returns the venue's time, which lags behind an advance of the world's clock. */
  const sync = async (controlPort: number) => {
    const { reply } = await requestControl(controlPort, 'POST', '/tick')
    const behindMs = Math.round((clock.nowMs() - (reply as { nowMs: number }).nowMs) / 1000) * 1000
    if (behindMs > 0) await requestControl(controlPort, 'POST', '/advance', { ms: behindMs })
  }

  const launch = async () => {
    await mkdir(dataDir, { recursive: true })
    await polygon?.start()
    let ready: ReturnType<typeof parseReady>
    const ports = (await openWays()).map(([id, way]) => [id, way.port] as const)
    const args = [
      ...nodeFlags,
      entry,
      ...compileCacheArgs(),
      '--data-dir',
      dataDir,
      '--watch-stdin',
      '--chain-ports',
      JSON.stringify(Object.fromEntries(ports)),
      '--realism',
      realism,
    ]
    const { child, port } = await startChild({
      command: process.execPath,
      args,
      pidFile: join(dir, 'polymarket.pid'),
      holdStdin: true,
      parsePort: (output) => {
        ready ??= parseReady(output)
        return ready?.port
      },
    })
    const controlPort = ready?.controlPort ?? 0
    try {
      await sync(controlPort)
    } catch (error) {
      await child.stop('SIGKILL')
      throw error
    }
    return { child, port, controlPort }
  }

  const restartable = createRestartable({ name: 'The prediction market', launch, log })
  const wake = () => (isStopped || restartable.current() ? undefined : restartable.start())
  return {
    start: () => {
      isStopped = false
      return restartable.start()
    },
    stop: (signal) => {
      isStopped = true
      return restartable.stop(signal)
    },
    wake,
    hasState: () => existsSync(dataDir),
    syncTime: async () => {
      const current = restartable.current()
      if (current) await sync(current.controlPort)
    },
    control: async (method, path, body) => {
      await wake()
      const current = restartable.current()
      if (!current) return { status: 503, reply: { detail: 'The prediction market is stopped.' } }
      return requestControl(current.controlPort, method, path, body)
    },
    port: () => restartable.current()?.port,
    close: async () => {
      await Promise.all(((await ways) ?? []).map(([, way]) => way.close()))
    },
  }
}
