/**
 * The environment of a bench: a database that syncs to disk, a world, and child processes; all of it is removed at the
 * end.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { embeddedPostgres } from '#store/embedded-server.ts'
import { migrate } from '#store/migrate.ts'
import { startWorld } from '#world/world.ts'

const isRoot = process.getuid?.() === 0
/** As root the server runs under another account, which needs access to its own folder. */
const folderMode = isRoot ? 0o711 : 0o700

export type BenchEnvironment = {
  folder: string
  /** A subfolder of the environment's folder. */
  newFolder(name: string): string
  newDatabase(name: string): Promise<string>
  /** Settings for a gateway that uses the world of this environment and starts none of its own. */
  world(): Promise<Record<string, string>>
  /** The port of the running world. */
  control(): string
} & AsyncDisposable

/** `settings` of the server, beside those of every bench. */
export async function createEnvironment(settings: Record<string, string> = {}): Promise<BenchEnvironment> {
  const parts = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'))
  chmodSync(folder, folderMode)
  parts.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  const newFolder = (name: string) => {
    const path = join(folder, name)
    mkdirSync(path, { recursive: true })
    chmodSync(path, folderMode)
    return path
  }
  let server: ReturnType<typeof embeddedPostgres> | undefined
  let control = ''
  const serve = async () => {
    const made = await embeddedPostgres({
      dataDir: newFolder('postgres'),
      settings: { max_connections: '200', ...settings },
    })
    parts.defer(() => made.close())
    return made
  }
  return {
    folder,
    newFolder,
    async newDatabase(name) {
      server ??= serve()
      const { url } = await server
      const admin = new pg.Client({ connectionString: url })
      await admin.connect()
      await admin.query(`create database ${name}`)
      await admin.end()
      const own = url.replace('/portico', `/${name}`)
      await migrate({ url: own })
      return own
    },
    async world() {
      const world = await startWorld({ dataDir: newFolder('world'), port: 0 })
      parts.use(world)
      const { evm, solana, hyperliquid, solver, lifi, honeypot, rugcheck, prices, faucet, images, stripe } =
        world.urls
      control = world.urls.control
      return {
        ETHEREUM_RPC_URL: evm['1'],
        BASE_RPC_URL: evm['8453'],
        ARBITRUM_RPC_URL: evm['42161'],
        POLYGON_RPC_URL: evm['137'],
        SOLANA_RPC_URL: solana,
        HYPERLIQUID_URL: hyperliquid,
        HYPERLIQUID_WEIGHT_PER_MINUTE: '0',
        RELAY_URL: solver,
        RELAY_QUOTES_PER_MINUTE: '0',
        LIFI_QUOTES_PER_TWO_HOURS: '0',
        HONEYPOT_URL: honeypot,
        RUGCHECK_URL: rugcheck,
        LIFI_URL: lifi,
        PRICES_URL: prices,
        COINBASE_URL: prices,
        FAUCET_URL: faucet,
        IMAGES_URL: images,
        STRIPE_URL: stripe,
      }
    },
    control: () => control,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

/** No limit rejects requests, and yet each one counts. */
export const unlimited = {
  RATE_AUTH: '1000000',
  RATE_READ: '1000000',
  RATE_MONEY: '1000000',
  RATE_EXIT: '1000000',
  RATE_STREAM: '1000000',
  RATE_REFUSED: '1000000',
}

export type ServerProcess = { url: string; pid: number; startMs: number } & AsyncDisposable

/** A server in a process of its own, which prints its URL in a line `ready <url>`. */
export async function startServer(
  file: string,
  args: string[] = [],
  env: Record<string, string> = {},
): Promise<ServerProcess> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, [resolve(import.meta.dirname, file), ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>((known, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /^(?:portico )?ready (\S+)$/.exec(line)?.[1]
      if (found) known(found)
    })
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code} before it was ready`)))
  })
  const startMs = performance.now() - startedMs
  return { url, pid: child.pid!, startMs, [Symbol.asyncDispose]: () => waitForExit(child) }
}

/** A server of somebody else on a free port; it may not listen yet. */
export async function startScript(
  file: string,
  argsOf: (port: number) => string[],
): Promise<{ url: string } & AsyncDisposable> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  const child = spawn(process.execPath, [file, ...argsOf(port)], { stdio: 'ignore' })
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => waitForExit(child) }
}

async function waitForExit(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await exited
}

export type LoadSpec = {
  url: string
  width: number
  forMs: number
  /** One per connection, taken in turn. */
  tokens?: string[]
  /** Requests per second at most, over all connections. */
  perSecond?: number
}
export type LoadResult = { count: number; perSecond: number; p50Us: number; p99Us: number; wrong: number }

/** Sends requests from a process of its own, so that neither server pays for the client. */
export function createLoadGenerator(): { run(spec: LoadSpec): Promise<LoadResult> } & AsyncDisposable {
  const child = fork(join(import.meta.dirname, 'load-generator.ts'), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  return {
    run: (spec) =>
      new Promise((resolve, reject) => {
        const onExit = (code: number | null) => reject(new Error(`the load generator ended with ${code}`))
        child.once('exit', onExit)
        child.once('message', (hits: LoadResult) => {
          child.off('exit', onExit)
          if (hits.wrong > 0) return reject(new Error(`${hits.wrong} of ${hits.count} answers were not 200`))
          resolve(hits)
        })
        child.send(spec)
      }),
    [Symbol.asyncDispose]: () => waitForExit(child),
  }
}

/** Processor time that a process has used, in milliseconds; undefined where the system does not report it. */
export function cpuMsOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // The unit is fixed at a hundredth of a second.
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return undefined
  }
}

export function residentMibOf(pid: number): number | undefined {
  try {
    const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kib === undefined ? undefined : Number(kib) / 1024
  } catch {
    return undefined
  }
}
