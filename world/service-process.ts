import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { type Child, startChild } from './child.ts'
import type { WorldClock } from './clock.ts'
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
const parseReady = (output: string): Ready | undefined => {
  const line = output.split('\n').find((each) => each.includes('"ready"') && each.trimEnd().endsWith('}'))
  return line === undefined ? undefined : (JSON.parse(line) as Ready)
}

export type RunningService = Ready & { child: Child }
type Launch = { entry: string; dataDir: string; args: readonly string[] }

/** The process ends when this one does. Its pid is stored beside its folder. */
export const launchService = async ({ entry, dataDir, args }: Launch): Promise<RunningService> => {
  await mkdir(dataDir, { recursive: true })
  let ready: Ready | undefined
  const { child, port } = await startChild({
    command: process.execPath,
    args: [...nodeFlags, entry, ...compileCacheArgs(), '--data-dir', dataDir, '--watch-stdin', ...args],
    pidFile: `${dataDir}.pid`,
    holdStdin: true,
    parsePort: (output) => {
      ready ??= parseReady(output)
      return ready?.port
    },
  })
  return { child, port, controlPort: ready?.controlPort ?? 0 }
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

/** A tick returns the time of a venue, which lags behind an advance of the world's clock. */
export const syncVenueTime = async (clock: WorldClock, controlPort: number): Promise<void> => {
  const { reply } = await requestControl(controlPort, 'POST', '/tick')
  const behindMs = Math.round((clock.nowMs() - (reply as { nowMs: number }).nowMs) / 1000) * 1000
  if (behindMs > 0) await requestControl(controlPort, 'POST', '/advance', { ms: behindMs })
}

/** A venue that never reached the world's time is not ready. */
export const launchVenue = async (clock: WorldClock, options: Launch): Promise<RunningService> => {
  const venue = await launchService(options)
  try {
    await syncVenueTime(clock, venue.controlPort)
  } catch (error) {
    await venue.child.stop('SIGKILL')
    throw error
  }
  return venue
}

type Options = {
  name: string
  dataDir: string
  /** Does not wake with a request. */
  isStopped: boolean
  launch: () => Promise<RunningService>
  syncTime: (controlPort: number) => Promise<unknown>
  close: () => Promise<void>
  log: (line: string) => void
}

export const createServiceNode = (options: Options): ServiceNode => {
  const { name, dataDir, launch, syncTime, close, log } = options
  let isStopped = options.isStopped
  const restartable = createRestartable({ name, launch, log })
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
      if (current) await syncTime(current.controlPort)
    },
    control: async (method, path, body) => {
      await wake()
      const current = restartable.current()
      if (!current) return { status: 503, reply: { detail: `${name} is stopped.` } }
      return requestControl(current.controlPort, method, path, body)
    },
    port: () => restartable.current()?.port,
    close,
  }
}
