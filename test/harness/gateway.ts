/** A gateway in a process of its own, used like a client does: by HTTP, with a key pair. */
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { upstreamNames } from '#config-safety.ts'
import type { WorldUrls } from '#world/world.ts'
import { bundleEnvironment } from './child-environment.ts'
import { serverFolder, testDatabase } from './cluster.ts'
import { type AuditTarget, assertAllConserved, isExcluded, type Owner } from './conservation.ts'
import { processWorld } from './process-world.ts'

const main = fileURLToPath(new URL('../../src/entry.js', import.meta.url))
/** The flags of `npm start`. */
const nodeFlags = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    scripts: { start: string }
  }
).scripts.start
  .split(' ')
  .filter((word) => word.startsWith('--'))

export type Gateway = {
  readonly url: string
  readonly pid: number
  readonly child: ChildProcess
  readonly lines: string[]
  /** Asks it to drain, and resolves with its exit code. */
  stop(): Promise<number | null>
  kill(): Promise<void>
} & AsyncDisposable

export type LaunchOptions = {
  env?: Record<string, string>
  readyMsMax?: number
  /** Control port of the world, where the gateway does not start one itself. */
  control?: string
  /** Another entry than that of the product. */
  entry?: string
}

export class NotReady extends Error {
  readonly code: number | null
  constructor(code: number | null, output: string) {
    super(`the gateway ended with ${code} before it was ready\n${output}`)
    this.code = code
  }
}

const worldOf = ({ lines }: Pick<Gateway, 'lines'>): string | undefined =>
  lines.find((line) => line.startsWith('world '))?.split(/\s+/)[1]

export async function launch({
  env = {},
  readyMsMax = 90_000,
  control,
  entry = main,
}: LaunchOptions = {}): Promise<Gateway> {
  const child = spawn(process.execPath, [...nodeFlags, entry], {
    env: { ...bundleEnvironment(), HOST: '127.0.0.1', PORT: '0', WORLD_PORT: '0', LEASE_MS: '2000', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  const ready = new Promise<string>((resolve) => {
    const read = (line: string) => {
      lines.push(line)
      const match = /^portico ready (\S+)$/.exec(line)
      if (match) resolve(match[1]!)
    }
    createInterface({ input: child.stdout! }).on('line', read)
    createInterface({ input: child.stderr! }).on('line', read)
  })
  const timeout = new AbortController()
  const url = await Promise.race([
    ready,
    exited.then((code) => {
      throw new NotReady(code, lines.join('\n'))
    }),
    delay(readyMsMax, undefined, { ref: false, signal: timeout.signal }).then(() => {
      child.kill('SIGKILL')
      throw new NotReady(null, `not ready within ${readyMsMax} ms\n${lines.join('\n')}`)
    }),
  ]).finally(() => timeout.abort())
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    return exited
  }
  return {
    url,
    pid: child.pid!,
    child,
    lines,
    stop,
    async kill() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await exited
    },
    /** Its users are audited first, where its world is known. */
    async [Symbol.asyncDispose]() {
      const world = control ?? worldOf({ lines })
      try {
        if (world !== undefined && child.exitCode === null && child.signalCode === null)
          await assertEveryUserConserved({ url, control: world, databaseUrl: env.DATABASE_URL })
      } finally {
        await stop()
      }
    },
  }
}

/** A folder for this test: a data folder, or the parent of several. */
export function dataFolder(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'portico-test-'))
  const remove = (folder: string) => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  return {
    path,
    [Symbol.dispose]() {
      for (const dataDir of [path, ...readdirSync(path).map((name) => join(path, name))])
        if (existsSync(join(dataDir, 'postgres.json'))) remove(serverFolder(dataDir))
      remove(path)
    },
  }
}

export type Answer<B = Record<string, unknown>> = { status: number; headers: Headers; body: B }

export async function http<B = Record<string, unknown>>(
  url: string,
  {
    method = 'GET',
    body,
    headers = {},
    timeoutMs = 100_000,
  }: { method?: string; body?: unknown; headers?: Record<string, string>; timeoutMs?: number } = {},
): Promise<Answer<B>> {
  const reply = await fetch(url, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const text = await reply.text()
  const json = reply.headers.get('content-type')?.includes('json') && text !== ''
  return { status: reply.status, headers: reply.headers, body: (json ? JSON.parse(text) : { text }) as B }
}

export type Agent = { agentId: string; privateKey: KeyObject; token: string; publicKey: string }

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')

export function keyPair(): { publicKey: string; privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  return { publicKey: base64(raw), privateKey }
}

/** A second is signed once: the same signature again would be a replay. */
const lastSigned = new Map<string, number>()

export async function freshToken(
  url: string,
  agentId: string,
  privateKey: KeyObject,
  nowMs = Date.now(),
): Promise<string> {
  const timestamp = Math.max(Math.floor(nowMs / 1000), (lastSigned.get(agentId) ?? 0) + 1)
  lastSigned.set(agentId, timestamp)
  const signature = base64(sign(null, Buffer.from(`${agentId}${timestamp}`), privateKey))
  const reply = await http<{ token: string }>(`${url}/v1/auth/token`, {
    method: 'POST',
    body: { agent_id: agentId, timestamp, signature },
  })
  if (reply.status !== 200) throw new Error(`token: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body.token
}

/** Every user, by the URL of the gateway that created it. */
const users = new Map<string, Agent[]>()

/** The token may be revoked by now, and reads may be rate-limited for a while. */
async function ownerOf(url: string, { agentId, privateKey, token }: Agent): Promise<Owner> {
  let now = token
  let last = 0
  return eventually(async () => {
    const { status, body } = await http<{ wallets: { address: string; chain_type: string }[] }>(
      `${url}/v1/wallets`,
      { headers: bearer({ token: now }) },
    )
    last = status
    if (status === 401) now = await freshToken(url, agentId, privateKey)
    if (status !== 200) return undefined
    return { token: now, evm: body.wallets.find(({ chain_type }) => chain_type === 'evm')!.address }
  }, `the wallets of ${agentId}`).catch((cause: Error) => {
    throw new Error(`${cause.message}; the last answer was ${last}`, { cause })
  })
}

/** Audits each user created at one of the URLs, through the gateway at `url` and its world. */
export async function assertEveryUserConserved(
  target: AuditTarget,
  origins: Iterable<string> = [target.url],
): Promise<void> {
  const agents = [...origins]
    .flatMap((each) => users.get(each) ?? [])
    .filter(({ agentId }) => !isExcluded(agentId))
  await assertAllConserved(
    target,
    agents.map((agent) => () => ownerOf(target.url, agent)),
  )
}

/** Registers a new key pair, as in the README. */
export async function newAgent(url: string): Promise<Agent> {
  const { publicKey, privateKey } = keyPair()
  const registered = await http<{ challenge: string; nonce: string }>(`${url}/v1/auth/register`, {
    method: 'POST',
    body: { public_key: publicKey },
  })
  if (registered.status !== 200)
    throw new Error(`register: ${registered.status} ${JSON.stringify(registered.body)}`)
  const { challenge, nonce } = registered.body
  const signature = base64(sign(null, Buffer.from(challenge), privateKey))
  const verified = await http<{ agent_id: string }>(`${url}/v1/auth/verify`, {
    method: 'POST',
    body: { nonce, signature },
  })
  if (verified.status !== 200) throw new Error(`verify: ${verified.status} ${JSON.stringify(verified.body)}`)
  const agentId = verified.body.agent_id
  const agent = { agentId, privateKey, publicKey, token: await freshToken(url, agentId, privateKey) }
  users.set(url, [...(users.get(url) ?? []), agent])
  return agent
}

/** What the key of an agent signs beside the token. `offsetMs`: of the clock of the gateway. */
export function signedAct(
  { agentId, privateKey }: Pick<Agent, 'agentId' | 'privateKey'>,
  act: 'agents_link_code' | 'agents_contest:true' | 'agents_contest:false',
  offsetMs = 0,
): { timestamp: number; signature: string } {
  const timestamp = Date.now() + offsetMs
  const [operation, ...says] = act.split(':')
  const text = [`portico-${operation}:v1:${agentId}:${timestamp}`, ...says].join(':')
  return { timestamp, signature: base64(sign(null, Buffer.from(text), privateKey)) }
}

export const bearer = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` })

/** A poll ends with its condition: the deadline is for what never happens, and long enough for a busy machine. */
export const deadlineMs = 60_000

/** A poll of an interface takes processor time from what it waits for, so that the pauses grow. */
const pollMs = { first: 20, growth: 1.25, max: 100 }

/** Polls until there is an answer, which `undefined` and `false` are not, or the timeout ends. */
export async function eventually<T>(
  poll: () => Promise<T | undefined>,
  what: string,
  msMax = deadlineMs,
): Promise<T> {
  const until = performance.now() + msMax
  for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pollMs.max, pauseMs * pollMs.growth)) {
    const found = await poll()
    if (found !== undefined && found !== false) return found
    if (performance.now() > until) throw new Error(`not within ${msMax} ms: ${what}`)
    await delay(pauseMs)
  }
}

type QuoteLimitName = 'RELAY_QUOTES_PER_MINUTE' | 'LIFI_QUOTES_PER_TWO_HOURS'

/** The settings of a gateway that uses a world without having started it. */
export const upstreamsOf = ({
  evm,
  solana,
  hyperliquid,
  polymarket,
  solver,
  honeypot,
  rugcheck,
  lifi,
  prices,
  images,
  stripe,
  faucet,
}: WorldUrls): Record<(typeof upstreamNames)[number] | QuoteLimitName, string> => ({
  ETHEREUM_RPC_URL: evm['1'],
  BASE_RPC_URL: evm['8453'],
  ARBITRUM_RPC_URL: evm['42161'],
  POLYGON_RPC_URL: evm['137'],
  SOLANA_RPC_URL: solana,
  HYPERLIQUID_URL: hyperliquid,
  POLYMARKET_URL: polymarket.clob.slice(0, -'/clob'.length),
  PRICES_URL: prices,
  COINBASE_URL: prices,
  RELAY_URL: solver,
  HONEYPOT_URL: honeypot,
  RUGCHECK_URL: rugcheck,
  LIFI_URL: lifi,
  // As by default: a test that wants a model sets it.
  MODEL_URL: 'off',
  IMAGES_URL: images,
  STRIPE_URL: stripe,
  FAUCET_URL: faucet,
  RELAY_QUOTES_PER_MINUTE: '0',
  LIFI_QUOTES_PER_TWO_HOURS: '0',
})
/** Every upstream as this one. */
export const upstreamsAt = (url: string): Record<string, string> =>
  Object.fromEntries([...upstreamNames.map((name) => [name, url]), ['MODEL_NAME', 'any']])

type Fresh = {
  /** The reason why the tests of the file cannot share the world of this process. */
  ownWorld?: string
}

/** A gateway with a database of its own; at the end of the test its users are audited, and all of it is removed. */
export async function freshGateway(
  env: Record<string, string> = {},
  { ownWorld }: Fresh = {},
): Promise<Gateway & { world: string; databaseUrl: string }> {
  const folder = dataFolder()
  const [database, urls] = await Promise.all([
    testDatabase(),
    ownWorld === undefined ? processWorld() : undefined,
  ])
  const clear = async () => {
    await database.drop()
    folder[Symbol.dispose]()
  }
  const gateway = await launch({
    env: {
      // As where the gateway starts a quiet world itself.
      ...(urls && { ...upstreamsOf(urls), HYPERLIQUID_WEIGHT_PER_MINUTE: '0' }),
      DATA_DIR: folder.path,
      DATABASE_URL: database.url,
      ...env,
    },
    ...(urls && { control: urls.control }),
  }).catch(async (error: unknown) => {
    await clear()
    throw error
  })
  return {
    ...gateway,
    world: urls?.control ?? worldOf(gateway) ?? '',
    databaseUrl: database.url,
    async [Symbol.asyncDispose]() {
      try {
        await gateway[Symbol.asyncDispose]()
      } finally {
        await clear()
      }
    },
  }
}
