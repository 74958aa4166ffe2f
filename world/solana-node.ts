import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startChild } from './child.ts'
import type { WorldClock } from './clock.ts'
import { compileCacheArgs } from './compile-cache.ts'
import { nodeFlags } from './node-flags.ts'
import type { PricedToken } from './prices/price-responder.ts'
import { createRestartable, type Signal } from './restartable.ts'

export type SolanaToken = PricedToken & { mint: string; name: string; program: string }

export type SolanaNode = {
  start: () => Promise<void>
  stop: (signal: Signal) => Promise<void>
  syncTime: () => Promise<void>
  tokens: () => Promise<SolanaToken[]>
  mint: (body: Record<string, string>) => Promise<{ signature: string }>
  /** Stores so many of the newest slots, until the node starts again. */
  storeSlots: (count: number) => Promise<unknown>
  /** One call of its JSON-RPC, past the proxies. */
  call: (method: string, params: readonly unknown[]) => Promise<unknown>
  port: () => number | undefined
}

const entry = join(import.meta.dirname, 'solana/process.ts')
const timeoutMs = 10_000
const pollMs = 40

const parsePort = (output: string): number | undefined => {
  const line = output.split('\n').find((each) => each.includes('"ready"') && each.trimEnd().endsWith('}'))
  return line === undefined ? undefined : (JSON.parse(line) as { port: number }).port
}

const request = async (
  port: number | undefined,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> => {
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

/** A client reads at `confirmed` by default, and a grant must be visible there once the faucet has answered. */
const waitUntilConfirmed = async (port: number | undefined, signature: string): Promise<void> => {
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'getSignatureStatuses',
    params: [[signature], { searchTransactionHistory: true }],
  }
  const deadlineMs = Date.now() + timeoutMs
  while (Date.now() < deadlineMs) {
    const { result } = (await request(port, 'POST', '/', call)) as {
      result: { value: ({ confirmationStatus: string } | null)[] }
    }
    const status = result.value[0]?.confirmationStatus
    if (status === 'confirmed' || status === 'finalized') return
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
  throw new Error('Solana did not confirm a transaction of the faucet in time.')
}

type Options = { dir: string; clock: WorldClock; log: (line: string) => void }

export const solanaNode = ({ dir, clock, log }: Options): SolanaNode => {
  let known: SolanaToken[] | undefined

  /** The child has a clock of its own; an advance of zero returns how far it is behind. */
  const sync = async (port: number) => {
    const { now_ms: nowMs } = (await request(port, 'POST', '/clock', { advance_seconds: 0 })) as {
      now_ms: number
    }
    const behindSeconds = Math.round((clock.nowMs() - nowMs) / 1000)
    if (behindSeconds > 0) await request(port, 'POST', '/clock', { advance_seconds: behindSeconds })
  }

  const launch = async () => {
    const dataDir = join(dir, 'solana')
    await mkdir(dataDir, { recursive: true })
    const args = [...nodeFlags, entry, ...compileCacheArgs(), '--data-dir', dataDir, '--port', '0']
    const pidFile = join(dir, 'solana.pid')
    const started = await startChild({ command: process.execPath, args, pidFile, parsePort, holdStdin: true })
    try {
      await sync(started.port)
    } catch (error) {
      await started.child.stop('SIGKILL')
      throw error
    }
    return started
  }

  const restartable = createRestartable({ name: 'Solana', launch, log })
  const port = () => restartable.current()?.port
  return {
    start: restartable.start,
    stop: restartable.stop,
    syncTime: async () => {
      const current = port()
      if (current !== undefined) await sync(current)
    },
    tokens: async () => {
      known ??= (await request(port(), 'GET', '/tokens')) as SolanaToken[]
      return known
    },
    mint: async (body) => {
      const minted = (await request(port(), 'POST', '/mint', body)) as { signature: string }
      await waitUntilConfirmed(port(), minted.signature)
      return minted
    },
    storeSlots: (count) => request(port(), 'POST', '/history', { stored_slots: count }),
    call: async (method, params) => {
      const reply = await request(port(), 'POST', '/', { jsonrpc: '2.0', id: 1, method, params })
      const { result, error } = reply as { result?: unknown; error?: { message: string } }
      if (error) throw new Error(`${method}: ${error.message}`)
      return result
    },
    port,
  }
}
