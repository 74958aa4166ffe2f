import { mkdirSync } from 'node:fs'
import type { Server } from 'node:http'
import { parseArgs } from 'node:util'
import { listen } from './http.ts'

const commonDefaults = {
  port: '0',
  'control-port': '0',
  seed: '1',
  'tick-ms': '1000',
  realism: 'quiet',
  'realism-seed': '1',
}

const seedMax = 2_147_483_647
export const intervalMaxMs = 600_000

export type VenueOptions<Name extends string = never> = {
  dataDir: string
  seed: number
  realism: { preset: string; seed: number }
  text: (name: Name) => string | undefined
  integer: (name: Name | keyof typeof commonDefaults, min: number, max: number) => number
}

/** The command line of a venue. `defaults` are those of its own options; undefined where one may be absent. */
export const readVenueOptions = <Name extends string>(
  defaults: Readonly<Record<Name, string | undefined>>,
): VenueOptions<Name> => {
  const all = Object.entries<string | undefined>({ ...commonDefaults, ...defaults })
  const options = Object.fromEntries(
    all.map(([name, text]) => [
      name,
      { type: 'string' as const, ...(text === undefined ? {} : { default: text }) },
    ]),
  )
  const { values }: { values: Record<string, string | boolean | undefined> } = parseArgs({
    options: {
      'data-dir': { type: 'string' },
      'compile-cache': { type: 'string' },
      'watch-stdin': { type: 'boolean' },
      ...options,
    },
  })
  const text = (name: string): string | undefined => {
    const value = values[name]
    return typeof value === 'string' ? value : undefined
  }
  const integer = (name: string, min: number, max: number): number => {
    const value = Number(text(name))
    if (Number.isInteger(value) && value >= min && value <= max) return value
    throw new Error(`--${name} must be ${min} to ${max}`)
  }
  const dataDir = text('data-dir')
  if (dataDir === undefined) throw new Error('--data-dir is required')
  mkdirSync(dataDir, { recursive: true })
  return {
    dataDir,
    seed: integer('seed', 0, seedMax),
    realism: { preset: text('realism') ?? 'quiet', seed: integer('realism-seed', 0, seedMax) },
    text,
    integer,
  }
}

export const exitOnFatal = (error: unknown): never => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  process.exit(70)
}

type Parts = {
  options: VenueOptions
  engine: { submit: (command: { kind: 'tick' }) => unknown; close: () => void }
  server: Server
  control: Server
  stream: { close: () => void }
  /** Ends what else works beside the servers. */
  stopWork: () => void
  realismSeed: number
}

/** Serves until a signal comes or the parent ends, and prints the ports. */
export const runVenue = async (parts: Parts): Promise<void> => {
  const { options, engine, server, control, stream, stopWork, realismSeed } = parts
  // An idle client must not reuse a connection that the server is closing.
  for (const listener of [server, control]) listener.keepAliveTimeout = 120_000
  const port = await listen(server, options.integer('port', 0, 65_535))
  const controlPort = await listen(control, options.integer('control-port', 0, 65_535))
  const everyMs = options.integer('tick-ms', 20, intervalMaxMs)
  const ticking = setInterval(() => engine.submit({ kind: 'tick' }), everyMs)

  let stopping = false
  const stop = (): void => {
    if (stopping) return
    stopping = true
    clearInterval(ticking)
    stopWork()
    stream.close()
    for (const listener of [server, control]) {
      listener.close()
      listener.closeAllConnections()
    }
    engine.close()
    process.exit(0)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  if (process.argv.includes('--watch-stdin')) process.stdin.once('end', stop).once('close', stop).resume()

  const realism = options.realism.preset
  process.stdout.write(`${JSON.stringify({ ready: true, port, controlPort, realism, seed: realismSeed })}\n`)
}
