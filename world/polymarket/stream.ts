import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { isForeignOrigin } from '#world/origin-check.ts'
import type { InjectedFailures } from '#world/venue-core/injected-failures.ts'
import { keyOfCredentials } from './auth.ts'
import { orderFrame, tradeFrame } from './clob-views.ts'
import type { Engine } from './machine.ts'
import {
  bestFrame,
  bookFrame,
  changesBetween,
  type Depth,
  depthOf,
  lastTradeFrame,
  newMarketFrame,
  priceChangeFrame,
  resolvedFrame,
  tickFrame,
} from './market-frames.ts'
import { type Market, marketByCondition, markets, otherOutcome, outcomeByToken } from './markets.ts'
import type { RealismControl } from './realism.ts'
import type { Trade } from './state.ts'
import { marketOf, type VenueEvent } from './venue.ts'

export type Stream = { drop: () => number; announce: (market: Market) => void; close: () => void }

type Base = { socket: WebSocket; lastDelayedMs: number; receivedMs: number }
type MarketClient = Base & { kind: 'market'; tokens: Set<string>; isCustom: boolean }
type UserClient = Base & {
  kind: 'user'
  user: string | undefined
  /** Conditions in lower case; undefined: all. */
  conditions: Set<string> | undefined
}
type Client = MarketClient | UserClient

const tokensMax = 2_000
const clientsMax = 1_000
const payloadBytesMax = 65_536
/** A client that reads no more of what it gets is ended. */
const backlogBytesMax = 4 * 1_048_576
const realismEveryMs = 250

type Frame = Record<string, unknown>

const listOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : []

const parse = (text: string): Frame | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Frame) : undefined
  } catch {
    return undefined
  }
}

type StreamDeps = {
  server: Server
  engine: Engine
  realism: RealismControl
  faults: InjectedFailures
  /** The path of the sockets, before `/market` and `/user`. */
  prefix: string
}

type Send = (client: Client, frame: unknown) => void

/** Late frames keep their order. */
const createSend =
  (realism: RealismControl): Send =>
  (client, frame) => {
    const write = () => {
      if (client.socket.bufferedAmount > backlogBytesMax) client.socket.terminate()
      if (client.socket.readyState === client.socket.OPEN)
        client.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
    }
    const nowMs = performance.now()
    const atMs = Math.max(client.lastDelayedMs, nowMs + realism.lagMs('socketLag'))
    if (atMs <= nowMs) return write()
    client.lastDelayedMs = atMs
    setTimeout(write, atMs - nowMs).unref()
  }

const subscribeMarkets = (engine: Engine, client: MarketClient, frame: Frame, send: Send): void => {
  if (typeof frame.custom_feature_enabled === 'boolean') client.isCustom = frame.custom_feature_enabled
  const wanted = listOf(frame.assets_ids).filter(outcomeByToken)
  if (frame.operation === 'unsubscribe') {
    for (const token of wanted) client.tokens.delete(token)
    return
  }
  const fresh = wanted.filter((token) => !client.tokens.has(token)).slice(0, tokensMax - client.tokens.size)
  if (wanted.length > 0 && fresh.length === 0) send(client, 'NO NEW ASSETS')
  for (const token of fresh) client.tokens.add(token)
  const books = fresh.flatMap((token) => {
    const listed = outcomeByToken(token)
    return listed ? [bookFrame(engine.venue, listed.market, listed.outcome)] : []
  })
  if (books.length > 0) send(client, books)
}

const subscribeUser = (engine: Engine, client: UserClient, frame: Frame, send: Send): void => {
  const named = listOf(frame.markets)
  const conditions = named.filter(marketByCondition).map((condition) => condition.toLowerCase())
  if (frame.type === 'user') {
    const key = keyOfCredentials(engine.venue.state, frame.auth)
    if (!key) {
      send(client, { error: 'Unauthorized/Invalid api key' })
      client.socket.close()
      return
    }
    client.user = key.address
    client.conditions = named.length === 0 ? undefined : new Set(conditions)
  } else if (client.user === undefined) return
  else if (frame.operation === 'subscribe') {
    client.conditions ??= new Set()
    for (const condition of conditions) client.conditions.add(condition)
  } else if (frame.operation === 'unsubscribe')
    for (const condition of conditions) client.conditions?.delete(condition)
}

const onText = (engine: Engine, client: Client, text: string, send: Send): void => {
  const isPing = text.toUpperCase() === 'PING'
  const frame = isPing ? undefined : parse(text)
  if (!frame) send(client, isPing ? 'PONG' : 'INVALID OPERATION')
  else if (client.kind === 'market') subscribeMarkets(engine, client, frame, send)
  else subscribeUser(engine, client, frame, send)
}

const wants = (client: MarketClient, market: Market): boolean =>
  market.tokens.some((token) => client.tokens.has(token))

/** A batch of events as frames of the market socket. */
const createMarketFeed = (engine: Engine) => {
  const depths = new Map<string, Depth>(
    markets.map((market) => [market.conditionId, depthOf(engine.venue, market)]),
  )
  const bookFrames = (market: Market): { frame: Frame; isCustom: boolean }[] => {
    const before = depths.get(market.conditionId) ?? new Map()
    const after = depthOf(engine.venue, market)
    depths.set(market.conditionId, after)
    const changes = changesBetween(before, after)
    if (changes.length === 0) return []
    return [
      { frame: priceChangeFrame(engine.venue, market, changes), isCustom: false },
      ...([0, 1] as const).map((outcome) => ({
        frame: bestFrame(engine.venue, market, outcome),
        isCustom: true,
      })),
    ]
  }
  return (market: Market, events: readonly VenueEvent[]): { frame: Frame; isCustom: boolean }[] => {
    const frames: { frame: Frame; isCustom: boolean }[] = []
    for (const event of events) {
      if (event.kind === 'print') {
        frames.push({ frame: lastTradeFrame(market, event.trade, event.atMs), isCustom: false })
        for (const outcome of [event.trade.taker.outcome, otherOutcome(event.trade.taker.outcome)])
          frames.push({ frame: bookFrame(engine.venue, market, outcome), isCustom: false })
      }
      if (event.kind === 'tick')
        for (const outcome of [0, 1] as const)
          frames.push({ frame: tickFrame(market, outcome, event), isCustom: false })
      if (event.kind === 'resolved')
        frames.push({ frame: resolvedFrame(engine.venue, market), isCustom: true })
    }
    return [...bookFrames(market), ...frames]
  }
}

const conditionOf = (event: VenueEvent): string =>
  'conditionId' in event
    ? event.conditionId
    : event.kind === 'order'
      ? event.order.conditionId
      : event.trade.conditionId

const usersOf = ({ taker, makers }: Trade): Set<string> =>
  new Set([taker, ...makers].map(({ user }) => user).filter((user) => user !== ''))

const userFrames = (client: UserClient, event: VenueEvent): Frame[] => {
  const { user, conditions } = client
  if (user === undefined || (conditions && !conditions.has(conditionOf(event).toLowerCase()))) return []
  if (event.kind === 'order' && event.order.user === user)
    return [orderFrame(event.order, event.change, event.atMs)]
  if (event.kind === 'trade' && usersOf(event.trade).has(user))
    return [tradeFrame(event.trade, user, event.atMs)]
  return []
}

/** Frames name one asset, or several in a change of prices. */
const isFor = (client: MarketClient, frame: Frame): boolean => {
  const { asset_id: token } = frame
  return typeof token !== 'string' || client.tokens.has(token)
}

export const openStream = ({ server, engine, realism, faults, prefix }: StreamDeps): Stream => {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: payloadBytesMax })
  const clients = new Set<Client>()
  const send = createSend(realism)
  const feed = createMarketFeed(engine)

  const publishMarket = (market: Market, events: readonly VenueEvent[]): void => {
    const frames = feed(market, events)
    for (const client of clients) {
      if (client.kind !== 'market' || !wants(client, market)) continue
      for (const { frame, isCustom } of frames)
        if ((!isCustom || client.isCustom) && isFor(client, frame)) send(client, frame)
    }
  }

  engine.onEvents((events) => {
    const byMarket = new Map<string, VenueEvent[]>()
    for (const event of events) {
      const id = conditionOf(event)
      byMarket.set(id, [...(byMarket.get(id) ?? []), event])
    }
    for (const client of clients)
      if (client.kind === 'user')
        for (const event of events) for (const frame of userFrames(client, event)) send(client, frame)
    for (const [id, list] of byMarket) publishMarket(marketOf(id), list)
  })

  const accept = (socket: WebSocket, kind: Client['kind']): void => {
    const base = { socket, lastDelayedMs: 0, receivedMs: performance.now() }
    const client: Client =
      kind === 'market'
        ? { ...base, kind, tokens: new Set(), isCustom: false }
        : { ...base, kind, user: undefined, conditions: undefined }
    clients.add(client)
    socket.on('close', () => clients.delete(client))
    socket.on('error', () => socket.terminate())
    socket.on('message', (data) => {
      client.receivedMs = performance.now()
      if (faults.takeMatching('ws', kind).some(({ effect }) => effect === 'wsDrop')) socket.terminate()
      else onText(engine, client, data.toString(), send)
    })
  }

  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // Node has taken its own listener away, and the peer may reset the connection.
    socket.on('error', () => {})
    const path = request.url?.split('?')[0]
    const kind = (['market', 'user'] as const).find((each) => path === `${prefix}/${each}`)
    if (isForeignOrigin(request) || !kind || clients.size >= clientsMax)
      return void socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n')
    sockets.handleUpgrade(request, socket, head, (accepted) => accept(accepted, kind))
  })

  const dropping = setInterval(() => {
    const { streamDropMs, socketSilenceMs } = realism.current()
    for (const { socket, receivedMs } of clients) {
      const isSilent = socketSilenceMs > 0 && performance.now() - receivedMs > socketSilenceMs
      const isDropped = streamDropMs > 0 && realism.isHit('streamDropMs', realismEveryMs / streamDropMs)
      if (isSilent || isDropped) socket.terminate()
    }
  }, realismEveryMs)

  const drop = (): number => {
    const dropped = clients.size
    for (const { socket } of clients) socket.terminate()
    return dropped
  }
  return {
    drop,
    announce: (market) => {
      for (const client of clients)
        if (client.kind === 'market' && client.isCustom) send(client, newMarketFrame(engine.venue, market))
    },
    close: () => {
      clearInterval(dropping)
      drop()
      sockets.close()
    },
  }
}
