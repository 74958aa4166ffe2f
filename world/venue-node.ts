import { join } from 'node:path'
import type { WorldClock } from './clock.ts'
import type { PresetName } from './failure-presets.ts'
import { createRestartable, type Signal } from './restartable.ts'
import { launchVenue, requestControl, syncVenueTime } from './service-process.ts'

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
  const launch = async () => {
    const launched = await launchVenue(clock, {
      entry,
      dataDir: join(dir, 'hyperliquid'),
      args: [
        '--port',
        '0',
        '--control-port',
        '0',
        '--arbitrum-rpc',
        arbitrumUrl(),
        '--realism',
        realism,
        '--realism-seed',
        String(realismSeed),
      ],
    })
    if (realism !== 'quiet') log(`Hyperliquid realism: ${realism}, seed ${realismSeed}`)
    return launched
  }

  const restartable = createRestartable({ name: 'Hyperliquid', launch, log })
  return {
    start: restartable.start,
    stop: restartable.stop,
    syncTime: async () => {
      const current = restartable.current()
      if (current) await syncVenueTime(clock, current.controlPort)
    },
    control: async (method, path, body) => {
      const current = restartable.current()
      if (!current) return { status: 503, reply: { detail: 'Hyperliquid is stopped.' } }
      return requestControl(current.controlPort, method, path, body)
    },
    port: () => restartable.current()?.port,
  }
}
