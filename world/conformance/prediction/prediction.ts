import assert from 'node:assert/strict'
import { MarketEventSchema, UserEventSchema } from '@polymarket/bindings/subscriptions'
import { createWalletClient, http, type WalletClient } from 'viem'
import { polygon } from 'viem/chains'
import WebSocket from 'ws'
import { accountOf, eventually } from '../venue/venue.ts'

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
  /** Frames that the official client would drop. */
  dropped: unknown[]
  next: (
    what: string,
    matches: (frame: Record<string, unknown>) => boolean,
  ) => Promise<Record<string, unknown>>
  send: (message: unknown) => void
  close: () => void
}

export const openFrames = async (url: string, kind: 'market' | 'user', first: unknown): Promise<Frames> => {
  const socket = new WebSocket(`${url}/${kind}`)
  const schema = kind === 'market' ? MarketEventSchema : UserEventSchema
  const all: Record<string, unknown>[] = []
  const dropped: unknown[] = []
  socket.on('message', (data) => {
    const text = data.toString()
    if (!/^[[{]/.test(text)) return
    const message: unknown = JSON.parse(text)
    for (const frame of Array.isArray(message) ? message : [message]) {
      if (schema.safeParse(frame).success) all.push(frame)
      else dropped.push(frame)
    }
  })
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
    next: (what, matches) => eventually(what, () => all.find(matches)),
    send,
    close: () => socket.close(),
  }
}

/** Every published key is there, and no other. */
export const assertKeys = (value: object, keys: readonly string[], what: string): void => {
  assert.deepEqual(Object.keys(value).sort(), [...keys].sort(), what)
}
