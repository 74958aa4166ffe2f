import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'

const root = join(import.meta.dirname, '..', '..', '..')
const programOf = (name: string) => join(root, 'world', name, 'process.ts')

export type RunningVenue = {
  url: string
  wsUrl: string
  controlUrl: string
  dataDir: string
  control: <T = Record<string, unknown>>(method: string, path: string, body?: unknown) => Promise<T>
  /** Kills the process; `restart` starts it again on the same data and ports. */
  kill: (signal: NodeJS.Signals) => Promise<void>
  restart: () => Promise<void>
  close: () => Promise<void>
}

type Ready = { port: number; controlPort: number }

const waitForReady = async (child: ChildProcess): Promise<Ready> => {
  let errors = ''
  child.stderr?.on('data', (data) => {
    errors += data
  })
  if (!child.stdout) throw new Error('The venue has no output')
  for await (const line of createInterface({ input: child.stdout })) {
    const ready = JSON.parse(line)
    if (ready.ready) return ready
  }
  throw new Error(`The venue did not start: ${errors}`)
}

const waitForExit = (child: ChildProcess): Promise<void> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once('exit', () => resolve()))

/** The venue as the world runs it: a process of its own, reached by URL only. */
export const startVenue = async (
  options: string[] = [],
  seed = 7,
  name: 'hyperliquid' | 'polymarket' = 'hyperliquid',
): Promise<RunningVenue> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'venue-'))
  let child: ChildProcess
  const run = async (ports: Ready): Promise<Ready> => {
    const given = [
      '--port',
      String(ports.port),
      '--control-port',
      String(ports.controlPort),
      '--seed',
      String(seed),
    ]
    child = spawn(
      process.execPath,
      [programOf(name), '--data-dir', dataDir, '--watch-stdin', ...given, ...options],
      {
        stdio: ['pipe', 'pipe', 'pipe'],
      },
    )
    return waitForReady(child)
  }
  const ports = await run({ port: 0, controlPort: 0 })
  const control = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`http://127.0.0.1:${ports.controlPort}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const reply = (await response.json()) as T
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(reply)}`)
    return reply
  }
  const kill = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await waitForExit(child)
  }
  return {
    url: `http://127.0.0.1:${ports.port}`,
    wsUrl: `ws://127.0.0.1:${ports.port}/ws`,
    controlUrl: `http://127.0.0.1:${ports.controlPort}`,
    dataDir,
    control,
    kill,
    restart: async () => {
      await kill('SIGKILL')
      await run(ports)
    },
    close: async () => {
      await kill('SIGTERM')
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** A key for every number; they own nothing outside of these tests. */
export const keyOf = (number: number): `0x${string}` => `0x${number.toString(16).padStart(64, '0')}`
export const accountOf = (number: number): PrivateKeyAccount => privateKeyToAccount(keyOf(number))

export const eventually = async <T>(
  what: string,
  read: () => Promise<T | undefined> | T | undefined,
): Promise<T> => {
  const deadline = Date.now() + 30_000
  for (;;) {
    const value = await read()
    if (value !== undefined && value !== false) return value
    if (Date.now() > deadline) throw new Error(`${what} did not happen`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Asks for a socket as a page of another origin does, and resets each connection while it is refused. */
export const resetRefusedUpgrades = async (url: string): Promise<void> => {
  const { port, hostname, pathname } = new URL(url)
  const request = `GET ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\nconnection: upgrade\r\nupgrade: websocket\r\norigin: https://evil.example\r\n\r\n`
  for (let attempt = 0; attempt < 50; attempt += 1)
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => socket.write(request))
      socket.on('error', () => {})
      socket.once('readable', () => socket.resetAndDestroy())
      socket.once('close', () => resolve())
    })
}
