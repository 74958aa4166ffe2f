import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Child, startChild } from './child.ts'
import type { WorldClock } from './clock.ts'
import type { Priced } from './prices/prices.ts'

export type SolanaToken = Priced & { mint: string; name: string; program: string }

export type SolanaNode = {
  start: () => Promise<void>
  stop: (signal: 'SIGTERM' | 'SIGKILL') => Promise<void>
  syncTime: () => Promise<void>
  tokens: () => Promise<SolanaToken[]>
  mint: (body: Record<string, string>) => Promise<{ signature: string }>
  port: () => number | undefined
}

const entry = join(import.meta.dirname, 'solana/process.ts')
const timeoutMs = 10_000

const portIn = (output: string): number | undefined => {
  const line = output.split('\n').find((each) => each.includes('"ready"') && each.trimEnd().endsWith('}'))
  return line === undefined ? undefined : (JSON.parse(line) as { port: number }).port
}

type Options = { dir: string; clock: WorldClock; log: (line: string) => void }

export const solanaNode = ({ dir, clock, log }: Options): SolanaNode => {
  let child: Child | undefined
  let port: number | undefined
  let wanted = false
  let starting: Promise<void> | undefined
  let known: SolanaToken[] | undefined
  let restarts = 0

  const ask = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    if (port === undefined) throw new Error('Solana is stopped.')
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(timeoutMs),
    })
    if (!answer.ok) throw new Error(`Solana refused ${path}: ${await answer.text()}`)
    return answer.json()
  }

  /** The child keeps a clock of its own; asking for no advance tells how far it is behind. */
  const syncTime = async () => {
    if (port === undefined) return
    const { now_ms: nowMs } = (await ask('POST', '/clock', { advance_seconds: 0 })) as { now_ms: number }
    const behindSeconds = (clock.nowMs() - nowMs) / 1000
    if (behindSeconds > 0.5) await ask('POST', '/clock', { advance_seconds: Math.round(behindSeconds) })
  }

  const launch = async () => {
    const dataDir = join(dir, 'solana')
    await mkdir(dataDir, { recursive: true })
    const args = [entry, '--data-dir', dataDir, '--port', '0']
    const pidFile = join(dir, 'solana.pid')
    const started = await startChild({ command: process.execPath, args, pidFile, portIn, holdStdin: true })
    child = started.child
    port = started.port
    await syncTime()
    void started.child.exited.then(() => {
      if (child !== started.child) return
      child = undefined
      port = undefined
      if (!wanted) return
      restarts += 1
      log('Solana ended by itself; starting it again from its last snapshot.')
      setTimeout(
        () => wanted && start().catch((error: Error) => log(error.message)),
        Math.min(50 * restarts, 5_000),
      )
    })
  }

  const start = () => {
    wanted = true
    if (child) return Promise.resolve()
    starting ??= launch().finally(() => {
      starting = undefined
    })
    return starting
  }

  return {
    start,
    stop: async (signal) => {
      wanted = false
      await starting?.catch(() => {})
      const current = child
      child = undefined
      port = undefined
      await current?.stop(signal)
    },
    syncTime,
    tokens: async () => {
      known ??= (await ask('GET', '/tokens')) as SolanaToken[]
      return known
    },
    mint: async (body) => (await ask('POST', '/mint', body)) as { signature: string },
    port: () => port,
  }
}
