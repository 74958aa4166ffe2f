import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startChild } from './child.ts'
import type { WorldClock } from './clock.ts'
import { compileCacheArgs } from './compile-cache.ts'
import type { PresetName } from './failure-presets.ts'
import { nodeFlags } from './node-flags.ts'
import { createRestartable, type Signal } from './restartable.ts'
import { parseReady, requestControl as request } from './service-process.ts'

/** A trading venue in a process of its own, with a control port for this world only. */
export type VenueNode = {
  start: () => Promise<void>
  stop: (signal: Signal) => Promise<void>
  syncTime: () => Promise<void>
  /** Forwards one request to the control port of the venue. */
  control: (method: string, path: string, body?: unknown) => Promise<{ status: number; reply: unknown }>
  port: () => number | undefined
}

type Options = {
  dir: string
  clock: WorldClock
  arbitrumUrl: () => string
  realism: PresetName
  log: (line: string) => void
}

const entry = join(import.meta.dirname, 'hyperliquid/process.ts')
/** Another one is set at the venue's control port. */
const realismSeed = 1

export const venueNode = ({ dir, clock, arbitrumUrl, realism, log }: Options): VenueNode => {
  /** A tick returns the venue's time, which lags behind an advance of the world's clock. */
  const sync = async (controlPort: number) => {
    const { reply } = await request(controlPort, 'POST', '/tick')
    const behindMs = Math.round((clock.nowMs() - (reply as { nowMs: number }).nowMs) / 1000) * 1000
    if (behindMs > 0) await request(controlPort, 'POST', '/advance', { ms: behindMs })
  }

  const launch = async () => {
    const dataDir = join(dir, 'hyperliquid')
    await mkdir(dataDir, { recursive: true })
    let ready: ReturnType<typeof parseReady>
    const args = [
      ...nodeFlags,
      entry,
      ...compileCacheArgs(),
      '--data-dir',
      dataDir,
      '--port',
      '0',
      '--control-port',
      '0',
      '--watch-stdin',
      '--arbitrum-rpc',
      arbitrumUrl(),
      '--realism',
      realism,
      '--realism-seed',
      String(realismSeed),
    ]
    const { child, port } = await startChild({
      command: process.execPath,
      args,
      pidFile: join(dir, 'hyperliquid.pid'),
      holdStdin: true,
      parsePort: (output) => {
        ready ??= parseReady(output)
        return ready?.port
      },
    })
    const controlPort = ready?.controlPort ?? 0
    if (realism !== 'quiet') log(`Hyperliquid realism: ${realism}, seed ${realismSeed}`)
    try {
      await sync(controlPort)
    } catch (error) {
      await child.stop('SIGKILL')
      throw error
    }
    return { child, port, controlPort }
  }

  const restartable = createRestartable({ name: 'Hyperliquid', launch, log })
  return {
    start: restartable.start,
    stop: restartable.stop,
    syncTime: async () => {
      const current = restartable.current()
      if (current) await sync(current.controlPort)
    },
    control: async (method, path, body) => {
      const current = restartable.current()
      if (!current) return { status: 503, reply: { detail: 'Hyperliquid is stopped.' } }
      return request(current.controlPort, method, path, body)
    },
    port: () => restartable.current()?.port,
  }
}
