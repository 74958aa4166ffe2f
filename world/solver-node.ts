import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startChild } from './child.ts'
import type { WorldClock } from './clock.ts'
import { compileCacheArgs } from './compile-cache.ts'
import type { EvmNode } from './evm/node.ts'
import type { PresetName } from './failure-presets.ts'
import { failureInjector } from './injected-failures.ts'
import type { ListeningServer } from './listen.ts'
import { nodeFlags } from './node-flags.ts'
import { startProxy } from './proxy.ts'
import { createRestartable } from './restartable.ts'
import { parseReady, requestControl as request, type ServiceNode } from './service-process.ts'
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
  const { name, dir, clock, urls, realism, log } = options
  const entry = join(import.meta.dirname, name, 'process.ts')
  const dataDir = join(dir, name)
  let isStopped = options.isStopped
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
    await mkdir(dataDir, { recursive: true })
    let ready: ReturnType<typeof parseReady>
    const args = [
      ...nodeFlags,
      entry,
      ...compileCacheArgs(),
      '--data-dir',
      dataDir,
      '--endpoints',
      JSON.stringify(await endpoints()),
      '--clock-offset-seconds',
      String(clock.offsetSeconds()),
      '--realism',
      realism,
      '--watch-stdin',
    ]
    const { child, port } = await startChild({
      command: process.execPath,
      args,
      pidFile: join(dir, `${name}.pid`),
      holdStdin: true,
      parsePort: (output) => {
        ready ??= parseReady(output)
        return ready?.port
      },
    })
    return { child, port, controlPort: ready?.controlPort ?? 0 }
  }

  const restartable = createRestartable({ name: `The ${name}`, launch, log })
  const start = () => {
    isStopped = false
    return restartable.start()
  }
  const wake = () => (isStopped || restartable.current() ? undefined : restartable.start())
  return {
    start,
    stop: (signal) => {
      isStopped = true
      return restartable.stop(signal)
    },
    wake,
    hasState: () => existsSync(dataDir),
    syncTime: async () => {
      const current = restartable.current()
      if (current)
        await request(current.controlPort, 'POST', '/clock', { offset_seconds: clock.offsetSeconds() })
    },
    control: async (method, path, body) => {
      await wake()
      const current = restartable.current()
      if (!current) return { status: 503, reply: { detail: `The ${name} is stopped.` } }
      return request(current.controlPort, method, path, body)
    },
    port: () => restartable.current()?.port,
    close: async () => {
      const opened: ListeningServer[] = []
      if (ways) opened.push((await ways).solana, ...(await ways).evm.values())
      await Promise.all(opened.map((each) => each.close()))
    },
  }
}
