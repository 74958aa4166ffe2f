import assert from 'node:assert/strict'
import { MarketEventSchema, UserEventSchema } from '@polymarket/bindings/subscriptions'
import { type ApiKeyCreds, Chain, ClobClient, createL2Headers } from '@polymarket/clob-client-v2'
import { createWalletClient, http, type WalletClient } from 'viem'
import { polygon } from 'viem/chains'
import WebSocket from 'ws'
import { accountOf, eventually } from '../venue/venue.ts'
import { missingKeys } from './schema-keys.ts'

export type Control = <T = Record<string, unknown>>(
  method: string,
  path: string,
  body?: unknown,
) => Promise<T>

/** The URLs of one prediction market, wherever it runs. */
export type PredictionUrls = {
  clob: string
  gamma: string
  data: string
  relayer: string
  bridge: string
  geoblock: string
  socket: string
}

export const urlsAt = (base: string): PredictionUrls => ({
  clob: `${base}/clob`,
  gamma: `${base}/gamma`,
  data: `${base}/data`,
  relayer: `${base}/relayer`,
  bridge: `${base}/bridge`,
  geoblock: `${base}/geoblock`,
  socket: `${base.replace('http', 'ws')}/ws`,
})

export type GammaMarket = {
  id: string
  slug: string
  conditionId: string
  clobTokenIds: string
  positionIds: string[]
  version: 'v1' | 'v2'
  negRisk: boolean
  orderPriceMinTickSize: number
}

export const readJson = async <T>(url: string, init: RequestInit = {}): Promise<T> =>
  (await (await fetch(url, init)).json()) as T

/** The tokens of a market, with its id on the chain. */
export const marketBySlug = async (urls: PredictionUrls, slug: string) => {
  const [market] = await readJson<GammaMarket[]>(`${urls.gamma}/markets?slug=${slug}`)
  assert.ok(market, `no market ${slug}`)
  const [yes = '', no = ''] = JSON.parse(market.clobTokenIds) as string[]
  return { ...market, yes, no }
}

/** Sends directly to a node, where the tests give one. */
export const walletOf = (number: number, rpcUrl?: string): WalletClient =>
  createWalletClient({
    account: accountOf(number),
    chain: polygon,
    transport: http(rpcUrl ?? 'http://127.0.0.1:1'),
  })

/** Every frame of a socket, each parsed with the schemas of the official client. */
export type Frames = {
  all: Record<string, unknown>[]
  /** Frames that the official client would drop, or that lack a published key. */
  dropped: unknown[]
  /** What is not JSON. */
  texts: string[]
  next: (
    what: string,
    matches: (frame: Record<string, unknown>) => boolean,
  ) => Promise<Record<string, unknown>>
  send: (message: unknown) => void
  close: () => void
  /** The socket is closed, by whichever side. */
  ended: Promise<void>
}

/** The official client reads this name where `match_time` is absent. */
const otherMatchTime = '.matchtime'

export const openFrames = async (url: string, kind: 'market' | 'user', first: unknown): Promise<Frames> => {
  const socket = new WebSocket(`${url}/${kind}`)
  const schema = kind === 'market' ? MarketEventSchema : UserEventSchema
  const all: Record<string, unknown>[] = []
  const dropped: unknown[] = []
  const texts: string[] = []
  socket.on('message', (data) => {
    const text = data.toString()
    if (!/^[[{]/.test(text)) return void texts.push(text)
    const message: unknown = JSON.parse(text)
    for (const frame of Array.isArray(message) ? message : [message]) {
      const missing = missingKeys(schema, frame).filter((path) => path !== otherMatchTime)
      if (missing.length === 0) all.push(frame)
      else dropped.push({ frame, missing })
    }
  })
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  const send = (message: unknown) =>
    socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  send(first)
  return {
    all,
    dropped,
    texts,
    next: (what, matches) => eventually(what, () => all.find(matches)),
    send,
    close: () => socket.close(),
    ended,
  }
}

/** A request in the name of an account, without what its client makes of the reply. */
export const signedFetch = async (
  { clob }: PredictionUrls,
  { number, creds }: { number: number; creds: ApiKeyCreds },
  { method, path, body }: { method: string; path: string; body?: unknown },
): Promise<Response> => {
  const text = body === undefined ? {} : { body: JSON.stringify(body) }
  const args = { method, requestPath: path.split('?')[0] ?? '', ...text }
  const signed = await createL2Headers(walletOf(number), creds, args)
  const headers = Object.fromEntries(Object.entries(signed).map(([name, value]) => [name, String(value)]))
  return fetch(`${clob}${path}`, { method, headers, ...text })
}

export type Witness = {
  /** Sees the frames of this account as well; its key exists afterwards. */
  follow: (number: number) => Promise<void>
  /** How many frames of each kind came, when not one would have been dropped. */
  end: () => Record<string, number>
}

/** Sees all that both sockets send, beside the clients that trade. */
export const openWitness = async (urls: PredictionUrls): Promise<Witness> => {
  const markets = await readJson<GammaMarket[]>(`${urls.gamma}/markets?limit=100`)
  const tokens = markets.flatMap(({ clobTokenIds }) => JSON.parse(clobTokenIds) as string[])
  const first = { type: 'market', assets_ids: tokens, custom_feature_enabled: true }
  const opened = [await openFrames(urls.socket, 'market', first)]
  return {
    follow: async (number) => {
      const client = new ClobClient({ host: urls.clob, chain: Chain.POLYGON, signer: walletOf(number) })
      const { key, secret, passphrase } = await client.createOrDeriveApiKey()
      const auth = { apiKey: key, secret, passphrase }
      opened.push(await openFrames(urls.socket, 'user', { type: 'user', auth }))
    },
    end: () => {
      for (const { close } of opened) close()
      assert.deepEqual(
        opened.flatMap(({ dropped }) => dropped),
        [],
      )
      const frames = opened.flatMap(({ all }) => all)
      const kinds = Map.groupBy(frames, ({ event_type }) => String(event_type))
      return Object.fromEntries([...kinds].map(([kind, list]) => [kind, list.length]))
    },
  }
}

/** Every published key is there, and no other. */
export const assertKeys = (value: object, keys: readonly string[], what: string): void => {
  assert.deepEqual(Object.keys(value).sort(), [...keys].sort(), what)
}
