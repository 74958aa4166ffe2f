/** The process of the world: supervises the chains and ends when its parent does. Writes JSON lines to stdout. */
import { parseArgs } from 'node:util'
import { useCompileCache } from './compile-cache.ts'

// Inherited by every process of the world: other accounts may not read its files.
process.umask(0o077)
useCompileCache()
const { supervise } = await import('./supervisor.ts')
const { presetNames } = await import('./failure-presets.ts')

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string' },
    'compile-cache': { type: 'string' },
    port: { type: 'string', default: '0' },
    'block-time': { type: 'boolean', default: false },
    realism: { type: 'string', default: 'quiet' },
    only: { type: 'string' },
    eager: { type: 'boolean', default: false },
  },
})

// A killed parent leaves a pipe without reader; a failed write to it is no error.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})
const send = (message: Record<string, unknown>) => process.stdout.write(`${JSON.stringify(message)}\n`)

let requestStop: () => void = () => {}
const stopRequested = new Promise<void>((resolve) => {
  requestStop = resolve
})
process.stdin.once('end', () => requestStop())
process.stdin.once('close', () => requestStop())
process.stdin.once('error', () => requestStop())
process.stdin.resume()
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => requestStop())

try {
  const dataDir = values['data-dir']
  if (dataDir === undefined) throw new Error('--data-dir is missing.')
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error('--port must be from 0 to 65535.')
  const realism = presetNames.find((name) => name === values.realism)
  if (!realism) throw new Error(`--realism must be one of ${presetNames.join(', ')}.`)
  const only = values.only?.split(',')
  const log = (progress: string) => void send({ progress })
  const { eager: isEager, 'block-time': hasBlockTime } = values
  const world = await supervise({ dataDir, port, automine: !hasBlockTime, realism, only, isEager, log })
  send({ ready: { urls: world.urls, worldId: world.worldId } })
  // Loads what only the faucet needs in advance, so that neither its first call nor the start waits for it.
  setTimeout(() => void import('./evm/faucet.ts').catch(() => {}), 1_500).unref()
  await stopRequested
  await world.close()
  process.exit(0)
} catch (error) {
  send({ failed: (error as Error).message })
  process.exit(1)
}
