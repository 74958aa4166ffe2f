/** A prediction market whose processes are killed while it trades, and which starts again on the same files. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Rpc, rpcOver } from '#world/evm/rpc.ts'
import type { WorldUrls } from '#world/world.ts'
import { eventually } from '../../../test/harness/gateway.ts'
import { killAtOnce, processesOf } from '../../../test/harness/processes.ts'
import { readJson } from './prediction.ts'
import { type Effects, type PredictionWorld, startPredictionWorld } from './prediction-world.ts'

/**
 * `notSent` ends the market between storing the bytes of a settlement and sending them; `both` ends the market and the
 * node one by one, `world` every process at one moment.
 */
export const killKinds = ['notSent', 'node', 'world', 'market', 'both'] as const
export type KillKind = (typeof killKinds)[number]

export type Answer = { status: number; body: unknown }
type Sent = { method: string; text?: string; headers?: Record<string, string> }

export type StormWorld = {
  urls: () => WorldUrls
  /** Undefined where the connection ended without a reply. */
  ask: (url: string, sent: Sent) => Promise<Answer | undefined>
  /** Repeats a request of the control port until the market has answered it. */
  control: <T>(method: string, path: string, body?: unknown) => Promise<T>
  effects: () => Promise<Effects>
  openTrades: () => Promise<number>
  rpc: Rpc
  kill: (kind: KillKind) => Promise<void>
  /** Requests that ended without a reply or with an error of the server. */
  lost: number
} & AsyncDisposable

/** A start of everything on a busy machine takes its time. */
const patienceMs = 300_000
const nobody = `0x${'0'.repeat(40)}`

const agent = new Agent({ keepAlive: true, maxSockets: 64 })

const ask: StormWorld['ask'] = (url, { method, text = '', headers = {} }) =>
  new Promise((resolve) => {
    const length = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }
    const outgoing = request(url, { method, agent, headers: { ...headers, ...length } }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.once('error', () => resolve(undefined))
      answer.once('end', () => {
        try {
          const body: unknown = JSON.parse(Buffer.concat(chunks).toString())
          resolve({ status: answer.statusCode ?? 0, body })
        } catch {
          resolve(undefined)
        }
      })
    })
    outgoing.once('error', () => resolve(undefined))
    outgoing.end(text)
  })

/** The hash of the last transaction that the market has stored. */
const lastStored = (folder: string): string | undefined => {
  const sequences = readdirSync(folder).flatMap((name) => /^events-([0-9]+)\.log$/.exec(name)?.[1] ?? [])
  if (sequences.length === 0) return undefined
  const newest = Math.max(...sequences.map(Number))
  const text = readFileSync(join(folder, `events-${newest}.log`), 'utf8')
  const at = text.lastIndexOf('"attempt":{"account":"operator"')
  return at < 0 ? undefined : /"hash":"(0x[0-9a-f]{64})"/.exec(text.slice(at))?.[1]
}

export const startStormWorld = async (setUp: (world: StormWorld) => Promise<void>): Promise<StormWorld> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'prediction-storm-'))
  let market: PredictionWorld = await startPredictionWorld(dataDir)
  const urls = () => market.world.urls

  const repeat = async <T>(what: string, read: () => Promise<T>): Promise<T> => {
    const once = () =>
      read().then(
        (value) => ({ value }),
        () => undefined,
      )
    return (await eventually(once, what, patienceMs)).value
  }

  const post = async (body: string): Promise<string> => {
    const answer = await ask(urls().evm['137'], { method: 'POST', text: body })
    if (!answer) throw new Error('The node did not answer.')
    return JSON.stringify(answer.body)
  }
  const rpc = rpcOver(post, () => agent.destroy())
  const isOnChain = async (hash: string) => (await rpc.call('eth_getTransactionByHash', [hash])) !== null

  const steer = async (part: 'polymarket' | '137', verb: 'kill' | 'start') => {
    const url = `${urls().control}/chains/${part}/${verb}`
    // A start that takes too long is repeated.
    await repeat(url, async () => {
      const { running } = await readJson<{ running?: boolean }>(url, { method: 'POST', body: '{}' })
      assert.equal(running, verb === 'start')
    })
  }

  /** Stops the market at moments that nobody chose, until the bytes that it stored last have not left it. */
  const killNotSent = async () => {
    const pid = Number(readFileSync(join(dataDir, 'polymarket.pid'), 'utf8'))
    let known: string | undefined
    let idleStops = 0
    const end = performance.now() + patienceMs
    for (let stops = 0; performance.now() < end; stops++) {
      process.kill(pid, 'SIGSTOP')
      const hash = lastStored(join(dataDir, 'polymarket'))
      // The second look comes after everything that was on its way at the first one.
      const isNotSent =
        hash !== undefined && hash !== known && !(await isOnChain(hash)) && !(await isOnChain(hash))
      process.kill(pid, isNotSent ? 'SIGKILL' : 'SIGCONT')
      if (isNotSent) return
      // On a busy machine the market needs time to store anything between two stops.
      idleStops = hash === known ? Math.min(idleStops + 1, 50) : 0
      known = hash
      await delay((stops % 7) + idleStops)
    }
    throw new Error('No moment was between storing and sending.')
  }

  const killers: Record<KillKind, () => Promise<void>> = {
    notSent: killNotSent,
    market: async () => {
      await steer('polymarket', 'kill')
      await steer('polymarket', 'start')
    },
    node: async () => {
      await steer('137', 'kill')
      await steer('137', 'start')
    },
    both: async () => {
      await Promise.all([steer('polymarket', 'kill'), steer('137', 'kill')])
      await steer('137', 'start')
      await steer('polymarket', 'start')
    },
    world: async () => {
      await killAtOnce(processesOf(dataDir))
      market = await startPredictionWorld(dataDir)
    },
  }

  const world: StormWorld = {
    urls,
    ask,
    control: (method, path, body) => repeat(path, () => market.control(method, path, body)),
    effects: () => repeat('the record', () => market.effects()),
    openTrades: async () => (await repeat('the open trades', () => market.effects(nobody))).openTrades,
    rpc,
    kill: async (kind) => {
      await killers[kind]()
      await setUp(world)
    },
    lost: 0,
    [Symbol.asyncDispose]: async () => {
      rpc.close()
      await market.stop()
      await rm(dataDir, { recursive: true, force: true, maxRetries: 3 })
    },
  }
  await setUp(world)
  return world
}
