import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startChild } from './child.ts'
import { compileCacheArgs } from './compile-cache.ts'
import { nodeFlags } from './node-flags.ts'
import { createRestartable, type Signal } from './restartable.ts'

/** A service in a process of its own, with a control port for this world only, which starts with its first request. */
export type ServiceNode = {
  start: () => Promise<void>
  stop: (signal: Signal) => Promise<void>
  /** Starts it unless it was stopped. */
  wake: () => Promise<void> | undefined
  /** True where an earlier run may have left open work. */
  hasState: () => boolean
  syncTime: () => Promise<void>
  /** Forwards one request to the control port of the service. */
  control: (method: string, path: string, body?: unknown) => Promise<{ status: number; reply: unknown }>
  port: () => number | undefined
  close: () => Promise<void>
}

type Ready = { port: number; controlPort: number }

/** The first line that a service prints. */
export const parseReady = (output: string): Ready | undefined => {
  const line = output.split('\n').find((each) => each.includes('"ready"') && each.trimEnd().endsWith('}'))
  return line === undefined ? undefined : (JSON.parse(line) as Ready)
}

const timeoutMs = 30_000

export const requestControl = async (port: number, method: string, path: string, body?: unknown) => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  return { status: answer.status, reply: (await answer.json()) as unknown }
}

type Options = {
  /** Of its folder, and of the folder of its program. */
  name: string
  /** As messages call it. */
  title: string
  dir: string
  /** Beyond the folder of its data. */
  args: () => Promise<readonly string[]>
  /** Brings its time to that of the world; `started` tells the first time of a process. */
  sync: (controlPort: number, moment: 'started' | 'later') => Promise<unknown>
  /** Does not wake with a request. */
  isStopped: boolean
  log: (line: string) => void
  close: () => Promise<void>
}

export const serviceNode = (options: Options): ServiceNode => {
  const { name, title, dir, sync, log } = options
  const dataDir = join(dir, name)
  let isStopped = options.isStopped

  const launch = async () => {
    await mkdir(dataDir, { recursive: true })
    let ready: Ready | undefined
    const entry = join(import.meta.dirname, name, 'process.ts')
    const own = ['--data-dir', dataDir, '--watch-stdin', ...(await options.args())]
    const { child, port } = await startChild({
      command: process.execPath,
      args: [...nodeFlags, entry, ...compileCacheArgs(), ...own],
      pidFile: join(dir, `${name}.pid`),
      holdStdin: true,
      parsePort: (output) => {
        ready ??= parseReady(output)
        return ready?.port
      },
    })
    const controlPort = ready?.controlPort ?? 0
    try {
      await sync(controlPort, 'started')
    } catch (error) {
      await child.stop('SIGKILL')
      throw error
    }
    return { child, port, controlPort }
  }

  const restartable = createRestartable({ name: title, launch, log })
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
      if (current) await sync(current.controlPort, 'later')
    },
    control: async (method, path, body) => {
      await wake()
      const current = restartable.current()
      if (!current) return { status: 503, reply: { detail: `${title} is stopped.` } }
      return requestControl(current.controlPort, method, path, body)
    },
    port: () => restartable.current()?.port,
    close: options.close,
  }
}
