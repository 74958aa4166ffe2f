import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { amountOf, plain } from './decimals.ts'
import type { Mids } from './mid-prices.ts'
import { createOrderUpdates, type OrderUpdate, type OrderUpdates, recentOf } from './order-updates.ts'
import { type Fill, parseFill } from './parse-replies.ts'
import { createSnapshotSubscriptions, type SnapshotSubscriptions } from './snapshot-subscriptions.ts'
import {
  closeConnection,
  createStreamConnection,
  emit,
  keepSubscribed,
  nowMs,
  openConnection,
  readOnce,
  type StreamConnection,
} from './stream-connection.ts'
import { type Subscribe, stateTopics, type UserEvent, type UserState, userTopics } from './stream-topics.ts'
import type { ChannelMessage, OnSkipped } from './wire.ts'

export type { UserEvent, UserState } from './stream-topics.ts'

/** One connection to the venue's streams. It is fast but lossy: listeners read over HTTP after every gap. */

export type OrderEvent = {
  symbol: string
  orderId: number
  cloid: string | null
  status: string
  atMs: number
}

export type VenueStreams = AsyncDisposable & {
  /** Returns mid prices by the venue's coin names, or undefined while they are stale. The first call subscribes. */
  mids(): Mids | undefined
  /** Receives mids once `mids` was called or a user is followed. */
  onMids(listener: (mids: Mids) => void): Disposable
  /** Follows a user until disposed; undefined if the user is followed already, or at the venue's limit of users. */
  subscribe(user: string, listener: (streamEvent: UserEvent) => void): Disposable | undefined
  /** Waits briefly for updates of an order. If the user is not followed, only fills by order id can be read. */
  readOrder<T>(
    user: string,
    id: number | string,
    read: (update: OrderUpdate) => T | undefined,
  ): Promise<T | undefined>
  brief: SnapshotSubscriptions['read']
  /** Receives recent fills of users who are not followed, a by-product of brief subscriptions. */
  onFills(listener: (streamEvent: { user: string; fills: Fill[] }) => void): Disposable
  /** Receives the order updates of all followed users. A message names no user; the client id identifies the order. */
  onOrders(listener: (orders: OrderEvent[]) => void): Disposable
  onState(listener: (state: UserState) => void): Disposable
  /** Returns since when the stream of a followed user has no gap. */
  subscribedSinceMs(user: string): number | undefined
  /** Returns the time of the last message, or 0 while disconnected. */
  lastMessageMs(): number
  state(): { connected: boolean; hasMids: boolean; users: number; connections: number; unreadable: number }
}

type Options = {
  url: string
  clock: Clock
  random: Random
  log: Log
  subscribedUsersMax?: number
  /** How many user slots lasting streams leave to brief subscriptions. */
  briefUsersMax?: number
  onSkipped?: OnSkipped
}

/** The stream may lag behind the reply to an order by this long; a request is slower and costs weight. */
const orderWaitMs = 150
/**
 * The durations of the two consecutive brief subscriptions that look for a fill. A fill that the first one misses,
 * because it appears only afterwards, is in the snapshot of the second.
 */
const briefFillsMs = [350, 650]
const freshMs = 10_000
const silentMs = 60_000
const watchdogEveryMs = 10_000
/** The venue's documented limit of users per address, over all subscriptions that name a user. */
const usersOfVenue = 10

type Listeners<T> = Set<(event: T) => void>
type StreamsState = {
  log: Log
  connection: StreamConnection
  brief: SnapshotSubscriptions
  /** The subscriptions of followed users, by lower-case address. */
  users: Map<string, Disposable>
  subscribedMax: number
  orderUpdates: OrderUpdates
  midsTopic: Disposable | undefined
  latestMids: { mids: Mids; atMs: number } | undefined
  lastOrderMessage: unknown
  midsListeners: Listeners<Mids>
  fillListeners: Listeners<{ user: string; fills: Fill[] }>
  orderListeners: Listeners<OrderEvent[]>
  stateListeners: Listeners<UserState>
}

export function openVenueStreams(options: Options): VenueStreams {
  const streams = createState(options)
  const { connection, users } = streams
  const watchdog = setInterval(() => reconnectSilent(streams), watchdogEveryMs)
  watchdog.unref()
  return {
    mids: () => freshMids(streams),
    onMids: (listener) => addListener(streams.midsListeners, listener),
    subscribe: (user, listener) => subscribeUser(streams, user.toLowerCase(), listener),
    readOrder: (user, id, read) => readOrder(streams, user.toLowerCase(), id, read),
    brief: async (user, ...how) =>
      connection.connected && !users.has(user.toLowerCase()) ? streams.brief.read(user, ...how) : undefined,
    onFills: (listener) => addListener(streams.fillListeners, listener),
    onOrders: (listener) => addListener(streams.orderListeners, listener),
    onState: (listener) => addListener(streams.stateListeners, listener),
    subscribedSinceMs: (user) =>
      connection.connected && users.has(user.toLowerCase()) ? connection.openedMs : undefined,
    lastMessageMs: () => (connection.connected ? connection.lastMessageMs : 0),
    state: () => ({
      connected: connection.connected,
      hasMids: streams.latestMids !== undefined,
      users: users.size,
      connections: connection.connections,
      unreadable: connection.unreadable,
    }),
    async [Symbol.asyncDispose]() {
      clearInterval(watchdog)
      await closeStreams(streams)
    },
  }
}

function createState({
  url,
  clock,
  random,
  log,
  subscribedUsersMax = usersOfVenue,
  briefUsersMax = 0,
  onSkipped,
}: Options): StreamsState {
  const connection = createStreamConnection({
    url,
    clock,
    random,
    log,
    onSkipped,
    onClose: () => {
      streams.latestMids = undefined
    },
  })
  const brief = createSnapshotSubscriptions({
    usersMax: briefUsersMax,
    nowMs: () => nowMs(connection),
    open: () => openConnection(connection),
    read: (channel, detail) => readOnce(connection, channel, detail),
  })
  const streams: StreamsState = {
    log,
    connection,
    brief,
    users: new Map(),
    subscribedMax: Math.min(subscribedUsersMax, usersOfVenue) - briefUsersMax,
    orderUpdates: createOrderUpdates(),
    midsTopic: undefined,
    latestMids: undefined,
    lastOrderMessage: undefined,
    midsListeners: new Set(),
    fillListeners: new Set(),
    orderListeners: new Set(),
    stateListeners: new Set(),
  }
  return streams
}

function addListener<T>(listeners: Listeners<T>, listener: (event: T) => void): Disposable {
  listeners.add(listener)
  return { [Symbol.dispose]: () => void listeners.delete(listener) }
}

function freshMids(streams: StreamsState): Mids | undefined {
  streams.midsTopic ??= subscribeMids(streams)
  const { latestMids, connection } = streams
  return latestMids && nowMs(connection) - latestMids.atMs <= freshMs ? latestMids.mids : undefined
}

const subscribeMids = (streams: StreamsState): Disposable =>
  keepSubscribed(streams.connection, { channel: 'allMids' }, (message) => {
    if (!message) return
    const mids = new Map(Object.entries(message.mids).map(([coin, price]) => [coin, plain(price)]))
    streams.latestMids = { mids, atMs: nowMs(streams.connection) }
    emit(streams.log, streams.midsListeners, mids)
  })

function subscribeUser(
  streams: StreamsState,
  user: string,
  listener: (event: UserEvent) => void,
): Disposable | undefined {
  const { log, connection, users, orderUpdates } = streams
  if (users.has(user) || users.size >= streams.subscribedMax) return undefined
  streams.midsTopic ??= subscribeMids(streams)
  const parts = new DisposableStack()
  const subscribe: Subscribe = (topic, read) => keepSubscribed(connection, topic, read)
  const onEvent = (event: UserEvent) => {
    if (event.type === 'fills') orderUpdates.fills(event.fills)
    emit(log, [listener], event)
  }
  for (const topic of userTopics(subscribe, user, onEvent)) parts.use(topic)
  parts.use(subscribe({ channel: 'orderUpdates', user }, (list) => acceptOrderUpdates(streams, list)))
  const onState = (state: UserState) => emit(log, streams.stateListeners, state)
  for (const topic of stateTopics(subscribe, user, onState)) parts.use(topic)
  parts.defer(() => users.delete(user))
  users.set(user, parts)
  return parts
}

/** A message of order updates names no user, so each subscription receives it, and only the first one reads it. */
function acceptOrderUpdates(streams: StreamsState, list: ChannelMessage<'orderUpdates'> | undefined): void {
  if (!list || list === streams.lastOrderMessage) return
  streams.lastOrderMessage = list
  for (const { order, status } of list)
    streams.orderUpdates.order(order.oid, status === 'open' ? leftOf(order) : undefined, order.cloid)
  emit(streams.log, streams.orderListeners, list.map(parseOrderEvent))
}

async function readOrder<T>(
  streams: StreamsState,
  user: string,
  id: number | string,
  read: (update: OrderUpdate) => T | undefined,
): Promise<T | undefined> {
  if (!streams.connection.connected) return undefined
  if (streams.users.has(user)) return streams.orderUpdates.waitFor(id, read, orderWaitMs)
  return typeof id === 'number' ? readBriefFills(streams, user, id, read) : undefined
}

async function readBriefFills<T>(
  { log, brief, fillListeners }: StreamsState,
  user: string,
  orderId: number,
  read: (update: OrderUpdate) => T | undefined,
): Promise<T | undefined> {
  const own = new Map<number, Fill>()
  const accept = (message: ChannelMessage<'userFills'>): T | undefined => {
    const fills = message.fills.map((fill) => parseFill(fill, user))
    emit(log, fillListeners, { user, fills: recentOf(fills) })
    for (const fill of fills) if (fill.orderId === orderId) own.set(fill.tradeId, fill)
    return read({ fills: [...own.values()], isList: true })
  }
  for (const withinMs of briefFillsMs) {
    const found = await brief.read(user, 'userFills', accept, withinMs)
    if (found !== undefined) return found
  }
  return undefined
}

/** Reconnects a silent connection: a connection that lost its subscriptions still answers pings. */
function reconnectSilent({ connection, midsTopic }: StreamsState): void {
  if (!connection.connected || !midsTopic || nowMs(connection) - connection.lastMessageMs < silentMs) return
  connection.lastMessageMs = nowMs(connection)
  void openConnection(connection).then(({ socket }) => socket.reconnect())
}

async function closeStreams({ connection, users, midsTopic }: StreamsState): Promise<void> {
  connection.ended.abort()
  for (const topic of [...users.values()]) topic[Symbol.dispose]()
  midsTopic?.[Symbol.dispose]()
  await closeConnection(connection)
}

const leftOf = ({ sz, origSz }: { sz: string; origSz: string }) => ({
  size: amountOf(sz),
  origSize: amountOf(origSz),
})

const parseOrderEvent = ({
  order,
  status,
  statusTimestamp,
}: ChannelMessage<'orderUpdates'>[number]): OrderEvent => ({
  symbol: order.coin,
  orderId: order.oid,
  cloid: order.cloid ?? null,
  status,
  atMs: statusTimestamp,
})
