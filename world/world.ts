import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { prepareCompileCache } from './compile-cache.ts'
import { nodeFlags } from './node-flags.ts'

export type WorldUrls = {
  evm: Record<'1' | '8453' | '42161' | '137', string>
  solana: string
  hyperliquid: string
  /** The services of the prediction market; `socket` is before `/market` and `/user`. */
  polymarket: Record<'clob' | 'gamma' | 'data' | 'relayer' | 'bridge' | 'geoblock' | 'socket', string>
  solver: string
  lifi: string
  honeypot: string
  rugcheck: string
  prices: string
  /** With `/v1`, as clients of OpenAI's interface take it. */
  model: string
  /** fal's synchronous form; `/queue` before the app is its queue. */
  images: string
  /** The API below `/v1`, and the pages on which payers pay. */
  stripe: string
  faucet: string
  control: string
}

/** Parts of a world; each venue requires the chain of its money, solver and lifi those that they trade on. */
export type WorldPart = keyof WorldUrls['evm'] | 'solana' | 'hyperliquid' | 'polymarket' | 'solver' | 'lifi'

export type World = { urls: WorldUrls; worldId: string } & AsyncDisposable

type Options = {
  dataDir: string
  /** Port of the control server; 0 takes the last used one when it is free, otherwise any. */
  port: number
  /** A block per transaction (the default), or one every two seconds. */
  automine?: boolean
  /** `realistic`: nodes lag, reorganise and reject requests as public ones do. */
  realism?: 'quiet' | 'realistic'
  /** Absent: all parts. Other parts are down, and start when the control server is asked for it. */
  only?: readonly WorldPart[]
  /** Starts also what otherwise starts with its first request. */
  isEager?: boolean
  progress?: (line: string) => void
  /** Kills a world that is not ready yet: its next start repeats what this one began. */
  cancelled?: AbortSignal
  /** Kills a world that is slow to end. */
  forced?: AbortSignal
}

type Message = { progress?: string; failed?: string; ready?: { urls: WorldUrls; worldId: string } }

/** This is longer than the wait for the lock and a slow first start together. */
const startTimeoutMs = 45_000
/** A gateway that stops forces the end earlier. */
const graceMs = 10_000

const waitUntilReady = (child: ChildProcess, progress: (line: string) => void) =>
  new Promise<NonNullable<Message['ready']>>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`The local world did not start in ${startTimeoutMs} ms.`)),
      startTimeoutMs,
    )
    let errorText = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      if (errorText.length < 4_000) errorText += chunk.toString()
    })
    if (!child.stdout) return
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { progress: progressLine, failed, ready } = JSON.parse(line) as Message
      if (progressLine !== undefined) progress(progressLine)
      if (failed !== undefined) errorText = failed
      if (!ready) return
      clearTimeout(timer)
      resolve(ready)
    })
    // `close` comes after the last line has been read, `exit` may come before it.
    child.once('close', () => {
      clearTimeout(timer)
      reject(new Error(errorText.trim() || 'The local world ended while starting.'))
    })
  })

/** The world leads a process group of its own: when it is gone, none of its chains stays. */
const killGroup = (world: ChildProcess) => {
  if (process.platform === 'win32') return world.kill('SIGKILL')
  try {
    return world.pid !== undefined && process.kill(-world.pid, 'SIGKILL')
  } catch {
    return false
  }
}

/**
 * Starts the local world in a process of its own. That process holds the read end of a pipe to this one, so the world
 * saves and ends when this process ends, for any reason.
 */
export const startWorld = async (options: Options): Promise<World> => {
  const { dataDir, port, automine = true, realism = 'quiet', only, isEager = false, progress } = options
  const { cancelled, forced } = options
  const directory = resolve(dataDir)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const compileCache = await prepareCompileCache(directory)
  const entry = join(import.meta.dirname, 'process.ts')
  const cacheArgs = compileCache === undefined ? [] : ['--compile-cache', compileCache]
  const args = [entry, ...cacheArgs, '--data-dir', directory, '--port', String(port), '--realism', realism]
  if (only) args.push('--only', only.join())
  if (!automine) args.push('--block-time')
  if (isEager) args.push('--eager')
  cancelled?.throwIfAborted()
  // Detached: Ctrl-C in a terminal reaches this process alone, which then stops the world in order.
  const child = spawn(process.execPath, [...nodeFlags, ...args], {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const kill = () => killGroup(child)
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  }).finally(kill)
  child.stdin.on('error', () => {})

  let ending = false
  const end = async () => {
    ending = true
    child.stdin.end()
    if (forced?.aborted) kill()
    const timer = setTimeout(kill, graceMs)
    await exited
    clearTimeout(timer)
  }
  try {
    cancelled?.addEventListener('abort', kill)
    const { urls, worldId } = await waitUntilReady(child, progress ?? (() => {}))
    cancelled?.removeEventListener('abort', kill)
    forced?.addEventListener('abort', kill)
    void exited.then(() => ending || progress?.('The local world ended by itself.'))
    child.unref()
    for (const stream of [child.stdin, child.stdout, child.stderr])
      (stream as unknown as { unref(): void }).unref()
    return { urls, worldId, [Symbol.asyncDispose]: end }
  } catch (error) {
    kill()
    await exited
    throw error
  }
}
