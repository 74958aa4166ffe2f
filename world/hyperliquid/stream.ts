import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { isForeignOrigin } from '#world/origin-check.ts'
import type { InjectedFailures } from '#world/venue-core/injected-failures.ts'
import type { AccountHistory } from './account-history.ts'
import type { VenueApi } from './api.ts'
import { channels, type Message, readTopic, type Topic } from './channels.ts'
import type { Engine } from './engine.ts'
import { digestEvents, type EventDigest, userMessages } from './event-digest.ts'
import type { RealismControl } from './realism.ts'
import { createRealisticStream, isOfFills, type RealisticStream } from './realistic-stream.ts'
import { MalformedError } from './schema.ts'
import { createStreamLimits } from './stream-limits.ts'

type Client = {
  socket: WebSocket
  topics: Map<string, Topic>
  /** Whether its address may subscribe one more user. */
  canSubscribe: (user: string) => boolean
  /** Delayed messages leave in their order. */
  lastDelayedMs: number
}

export type Stream = { drop: () => number; close: () => void }

const bookEveryMs = 40
const realismEveryMs = 250
const subscriptionsMax = 1_000

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, item]) => item !== null && item !== undefined)
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sorted(item)]),
  )
}

/** Subscriptions are equal regardless of the order of their keys. */
const keyOf = (subscription: unknown): string => JSON.stringify(sorted(subscription)).toLowerCase()

const send = ({ socket }: Client, message: unknown): void => {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message))
}

const fail = (client: Client, sentence: string): void => send(client, { channel: 'error', data: sentence })

const isAffected = (eventDigest: EventDigest, type: string, topic: Topic): boolean => {
  const refresh = channels[type]?.refresh
  if (refresh === 'prices') return eventDigest.prices
  if (refresh === 'book') return topic.market !== undefined && eventDigest.books.has(topic.market.asset)
  return (
    refresh === 'account' &&
    (eventDigest.prices || (topic.user !== undefined && eventDigest.users.has(topic.user)))
  )
}

/** The messages of one topic for a batch of events. */
const messagesFor = (engine: Engine, eventDigest: EventDigest, topic: Topic): Message[] => {
  const { type } = topic.subscription
  if (type === 'trades') {
    const trades = eventDigest.trades.get(topic.market?.coin ?? '')
    return trades ? [{ channel: 'trades', data: trades }] : []
  }
  const digest = topic.user === undefined ? undefined : eventDigest.users.get(topic.user)
  const userEvents = digest && topic.user ? userMessages(type, topic.user, digest) : []
  const traded = type === 'candle' && eventDigest.trades.has(topic.market?.coin ?? '')
  const snapshots =
    traded || isAffected(eventDigest, type, topic)
      ? (channels[type]?.snapshot(engine.venue, topic) ?? [])
      : []
  return [...userEvents, ...snapshots]
}

type Frame = { method?: unknown; subscription?: unknown; id?: unknown; request?: unknown }

const rejectionReason = (client: Client, topic: Topic | undefined, key: string): string | undefined => {
  if (!topic) return 'Invalid subscription '
  if (client.topics.has(key)) return 'Already subscribed: '
  if (topic.user !== undefined && !client.canSubscribe(topic.user)) return tooManyUsers
  return client.topics.size >= subscriptionsMax ? 'Too many subscriptions: ' : undefined
}

/** As upstream says it, without an echo of the subscription. */
const tooManyUsers = 'Cannot track more than 10 total users.'

const subscribe = (realisticStream: RealisticStream, client: Client, subscription: unknown): void => {
  const topic = readTopic(subscription)
  const key = keyOf(subscription)
  const reason = rejectionReason(client, topic, key)
  if (reason === tooManyUsers) fail(client, reason)
  else if (reason || !topic) fail(client, `${reason}${JSON.stringify(subscription)}`)
  else {
    client.topics.set(key, topic)
    send(client, { channel: 'subscriptionResponse', data: { method: 'subscribe', subscription } })
    const { type } = topic.subscription
    for (const message of realisticStream.snapshot(type, topic)) send(client, message)
  }
}

const unsubscribe = (client: Client, subscription: unknown): void => {
  if (client.topics.delete(keyOf(subscription)))
    send(client, { channel: 'subscriptionResponse', data: { method: 'unsubscribe', subscription } })
  else fail(client, `Already unsubscribed: ${JSON.stringify(subscription)}`)
}

type FrameDeps = { engine: Engine; api: VenueApi; realisticStream: RealisticStream }

/** The two HTTP requests, sent over the socket. */
const post = (engine: Engine, api: VenueApi, client: Client, { id, request }: Frame): void => {
  const reply = (response: unknown) =>
    engine.afterPersist(() => send(client, { channel: 'post', data: { id, response } }))
  const { type, payload } = (request ?? {}) as { type?: unknown; payload?: unknown }
  try {
    if (type === 'info') {
      const data = api.info(payload)
      reply({ type: 'info', payload: { type: (payload as { type: string }).type, data } })
    } else if (type === 'action') reply({ type: 'action', payload: api.exchange(payload) })
    else fail(client, `Error parsing JSON into valid websocket request: ${JSON.stringify({ id, request })}`)
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error
    reply({ type: 'error', payload: `422: ${error.message}` })
  }
}

const readFrame = (text: string): Frame => {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

const onFrame = ({ engine, api, realisticStream }: FrameDeps, client: Client, text: string): void => {
  const frame = readFrame(text)
  if (frame.method === 'ping') send(client, { channel: 'pong' })
  else if (frame.method === 'subscribe') subscribe(realisticStream, client, frame.subscription)
  else if (frame.method === 'unsubscribe') unsubscribe(client, frame.subscription)
  else if (frame.method === 'post') post(engine, api, client, frame)
  else fail(client, `Error parsing JSON into valid websocket request: ${text}`)
}

const actionType = (text: string): string => /"type":"([a-zA-Z0-9]+)"/.exec(text)?.[1] ?? ''

/** Books change very often, so their messages are throttled to one in a few milliseconds. */
const bookThrottle = (publish: (books: Set<number>) => void) => {
  const dirty = new Set<number>()
  let timer: NodeJS.Timeout | undefined
  return {
    mark: (books: Iterable<number>): void => {
      for (const asset of books) dirty.add(asset)
      if (dirty.size === 0) return
      timer ??= setTimeout(() => {
        timer = undefined
        publish(new Set(dirty))
        dirty.clear()
      }, bookEveryMs)
    },
    stop: () => clearTimeout(timer),
  }
}

/** Late fills keep their order; other messages are not delayed. */
const sendDelayed = (realismControl: RealismControl, client: Client, message: Message): void => {
  const nowMs = performance.now()
  const atMs = isOfFills(message)
    ? Math.max(client.lastDelayedMs, nowMs + realismControl.lagMs('fillsLag'))
    : nowMs
  if (atMs > nowMs) {
    client.lastDelayedMs = atMs
    setTimeout(() => send(client, message), atMs - nowMs).unref()
  } else send(client, message)
}

type RealismDeps = {
  engine: Engine
  realisticStream: RealisticStream
  realismControl: RealismControl
  clients: ReadonlySet<Client>
}

/** Drops streams and pushes foreign records; returns the function that stops it. */
const startRealism = ({ engine, realisticStream, realismControl, clients }: RealismDeps): (() => void) => {
  let sinceMs = engine.nowMs()
  const timer = setInterval(() => {
    const { streamDropMs } = realismControl.current()
    const toMs = engine.nowMs()
    for (const client of clients) {
      if (streamDropMs > 0 && realismControl.isHit('streamDropMs', realismEveryMs / streamDropMs))
        client.socket.terminate()
      for (const topic of client.topics.values())
        for (const message of realisticStream.foreign(topic, { fromMs: sinceMs, toMs: toMs - 1 }))
          send(client, message)
    }
    sinceMs = toMs
  }, realismEveryMs)
  return () => clearInterval(timer)
}

type StreamDeps = {
  server: Server
  engine: Engine
  api: VenueApi
  faults: InjectedFailures
  realismControl: RealismControl
  history: AccountHistory
}

export const openStream = ({ server, engine, api, faults, realismControl, history }: StreamDeps): Stream => {
  const realisticStream = createRealisticStream(engine.venue, history, realismControl)
  const sockets = new WebSocketServer({ noServer: true })
  const clients = new Set<Client>()

  const publish = (eventDigest: EventDigest): void => {
    for (const client of clients)
      for (const topic of client.topics.values())
        for (const message of messagesFor(engine, eventDigest, topic))
          sendDelayed(realismControl, client, realisticStream.edit(message))
  }
  const idleDigest = { users: new Map(), trades: new Map(), prices: false }
  const throttle = bookThrottle((books) => publish({ ...idleDigest, books }))

  engine.onEvents((events) => {
    if (clients.size === 0) return
    const eventDigest = digestEvents(events)
    throttle.mark(eventDigest.books)
    publish({ ...eventDigest, books: new Set() })
  })

  const stopRealism = startRealism({ engine, realisticStream, realismControl, clients })

  const limits = createStreamLimits(() => engine.venue.state.settings)
  const addresses = new Map<Client, string>()
  const clientsOf = (address: string) => [...clients].filter((client) => addresses.get(client) === address)
  const subscribedUsers = (address: string): string[] =>
    clientsOf(address).flatMap(({ topics }) => [...topics.values()].flatMap(({ user }) => user ?? []))

  const accept = (socket: WebSocket, address: string): void => {
    const canSubscribe = (user: string) => limits.canSubscribe(subscribedUsers(address), user)
    const client: Client = { socket, topics: new Map(), canSubscribe, lastDelayedMs: 0 }
    clients.add(client)
    addresses.set(client, address)
    socket.on('close', () => {
      clients.delete(client)
      addresses.delete(client)
    })
    socket.on('error', () => socket.terminate())
    socket.on('message', (data) => {
      const text = data.toString()
      if (faults.takeMatching('ws', actionType(text)).some(({ effect }) => effect === 'wsDrop'))
        socket.terminate()
      else onFrame({ engine, api, realisticStream }, client, text)
    })
  }

  server.on('upgrade', (request, socket: Socket, head) => {
    // Node has taken its own listener away, and the peer may reset the connection.
    socket.on('error', () => {})
    if (isForeignOrigin(request))
      return void socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n')
    const address = socket.remoteAddress ?? ''
    if (request.url?.split('?')[0] !== '/ws') socket.destroy()
    else if (limits.canConnect(address, clientsOf(address).length, Date.now()))
      sockets.handleUpgrade(request, socket, head, (accepted) => accept(accepted, address))
    else socket.end('HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
  })

  const drop = (): number => {
    const dropped = clients.size
    for (const { socket } of clients) socket.terminate()
    return dropped
  }
  return {
    drop,
    close: () => {
      throttle.stop()
      stopRealism()
      drop()
      sockets.close()
    },
  }
}
