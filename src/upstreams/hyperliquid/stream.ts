import type { WebSocketTransport } from '@nktkas/hyperliquid'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { type BriefSubscriptions, createBriefSubscriptions } from './brief-subscriptions.ts'
import { amountOf, plain } from './decimals.ts'
import { createOrderUpdates, type OrderUpdate, recentOf } from './order-updates.ts'
import { type Fill, parseFill } from './parse.ts'
import type { Mids } from './prices.ts'
import { backoffMs, createReconnectBackoff } from './reconnect-backoff.ts'
import {
  type Subscription,
  stateTopics,
  type UserEvent,
  type UserState,
  userTopics,
} from './stream-topics.ts'
import { type Channel, type ChannelMessage, type OnSkipped, parseMessage } from './wire.ts'

export type { UserEvent, UserState } from './stream-topics.ts'

/** One connection to the venue's streams. Low latency but lossy: listeners read over HTTP after every gap. */

export type OrderEvent = {
  symbol: string
  orderId: number
  cloid: string | null
  status: string
  atMs: number
}

export type VenueStreams = AsyncDisposable & {
  /** By the venue's names of the coins; undefined while there is no fresh word. The first question begins to listen. */
  mids(): Mids | undefined
  /** Hears what is told, once somebody has asked or is followed. */
  onMids(listener: (mids: Mids) => void): Disposable
  /** Undefined where as many users are followed as the venue allows. */
  follow(user: string, listener: (streamEvent: UserEvent) => void): Disposable | undefined
  /**
   * What the stream says of an order, by the venue's id of it or by ours, within a short wait. Without a lasting stream
   * of the user, only fills by the venue's id are read, by a brief subscription.
   */
  readOrder<T>(
    user: string,
    id: number | string,
    read: (update: OrderUpdate) => T | undefined,
  ): Promise<T | undefined>
  /** Reads a user who is not followed. */
  brief: BriefSubscriptions['read']
  /** Recent fills of users who are not followed, as brief subscriptions bring them along. */
  onFills(listener: (streamEvent: { user: string; fills: Fill[] }) => void): Disposable
  /** Of all users that are followed; the venue does not say of whom, the client id does. */
  onOrders(listener: (orders: OrderEvent[]) => void): Disposable
  /** The state of followed users, each time the venue pushes it. */
  onState(listener: (state: UserState) => void): Disposable
  /** Since when the stream of a followed user stands without a gap. */
  followedSinceMs(user: string): number | undefined
  /** When the stream said anything last; 0 while it is not connected. */
  lastMessageMs(): number
  state(): { connected: boolean; hasMids: boolean; users: number; connections: number; unreadable: number }
}

type Options = {
  url: string
  clock: Clock
  random: Random
  log: Log
  followedUsersMax?: number
  /** Places that lasting streams leave to brief subscriptions. */
  briefUsersMax?: number
  onSkipped?: OnSkipped
}

/** So long the stream may be behind the answer to an order; asking is slower, and dear. */
const orderWaitMs = 150
/** A fill that happened before a subscription and shows up after it is in the snapshot of the next one. */
const briefFillsMs = [350, 650]
const requestMs = 10_000
const pingEveryMs = 30_000
const freshMs = 10_000
const silentMs = 60_000
const watchdogEveryMs = 10_000
/** Documented: per address, over all subscriptions that are about a user. */
const usersOfVenue = 10

export function venueStreams({
  url,
  clock,
  random,
  log,
  followedUsersMax = usersOfVenue,
  briefUsersMax = 0,
  onSkipped,
}: Options): VenueStreams {
  const ended = new AbortController()
  const reconnectBackoff = createReconnectBackoff(() => clock.now().getTime(), random)
  const users = new Map<string, Disposable>()
  const stateListeners = new Set<(state: UserState) => void>()
  let openedMs = 0
  const midsListeners = new Set<(mids: Mids) => void>()
  const orderUpdates = createOrderUpdates()
  const fillListeners = new Set<(streamEvent: { user: string; fills: Fill[] }) => void>()
  const orderListeners = new Set<(orders: OrderEvent[]) => void>()
  let known: { mids: Mids; atMs: number } | undefined
  let midsTopic: Disposable | undefined
  let lastMessageMs = 0
  let lastOrderMessage: unknown
  let [connected, connections, unreadable] = [false, 0, 0]
  let connecting: Promise<WebSocketTransport> | undefined
  const nowMs = () => clock.now().getTime()
  const lastingMax = Math.min(followedUsersMax, usersOfVenue) - briefUsersMax

  const open = () => {
    connecting ??= import('@nktkas/hyperliquid').then(({ WebSocketTransport }) => {
      const opened = new WebSocketTransport({
        url,
        timeout: requestMs,
        keepAlive: { interval: pingEveryMs, timeout: requestMs },
        reconnect: { reconnectionDelay: reconnectBackoff.delayMs, connectionTimeout: requestMs },
      })
      opened.socket.addEventListener('open', () => {
        connections += 1
        connected = true
        openedMs = nowMs()
        lastMessageMs = openedMs
      })
      opened.socket.addEventListener('close', () => {
        connected = false
        known = undefined
      })
      return opened
    })
    return connecting
  }

  /** A listener must never end the stream, and the stream never the process. */
  const emit = <T>(listeners: Iterable<(streamEvent: T) => void>, news: T) => {
    for (const listener of listeners)
      try {
        listener(news)
      } catch (error) {
        log.error({ error }, 'a listener of the venue stream failed')
      }
  }

  const readMessages = new WeakMap<object, unknown>()
  /** Every subscription of a channel is given the same message: it is parsed once, and stays one object. */
  const readOnce = <K extends Channel>(channel: K, detail: unknown): ChannelMessage<K> | undefined => {
    if (typeof detail !== 'object' || detail === null) return parseMessage(channel, detail, onSkipped)
    if (!readMessages.has(detail)) readMessages.set(detail, parseMessage(channel, detail, onSkipped))
    return readMessages.get(detail) as ChannelMessage<K> | undefined
  }

  /** Subscribed for as long as it is held, however often the venue refuses or the connection breaks. */
  const keepSubscribed = <K extends Channel>(
    { channel, user }: Subscription & { channel: K },
    read: (message: ChannelMessage<K> | undefined) => void,
  ): Disposable => {
    const stop = new AbortController()
    const signal = AbortSignal.any([stop.signal, ended.signal])
    let timer: NodeJS.Timeout | undefined
    let current: { unsubscribe(): Promise<void> } | undefined
    const listen = (event: CustomEvent<unknown>) => {
      lastMessageMs = nowMs()
      const message = readOnce(channel, event.detail)
      if (message === undefined) unreadable += 1
      emit([read], message)
    }
    const attempt = async (failures: number): Promise<void> => {
      const retry = (error: unknown) => {
        if (signal.aborted) return
        log.debug({ error, channel }, 'a subscription at the venue failed; it is tried again')
        clearTimeout(timer)
        timer = setTimeout(() => void attempt(failures + 1), backoffMs(failures, random))
      }
      try {
        const transport = await open()
        const payload = { type: channel, ...(user && { user }) }
        const onError = () => retry(undefined)
        current = await transport.subscribe(channel, payload, listen, { signal, onError })
      } catch (error) {
        retry(error)
      }
    }
    void attempt(0)
    return {
      [Symbol.dispose]() {
        stop.abort()
        clearTimeout(timer)
        current?.unsubscribe().catch((error: unknown) => log.debug({ error }, 'an unsubscription failed'))
      },
    }
  }

  const brief = createBriefSubscriptions({ usersMax: briefUsersMax, nowMs, open, read: readOnce })
  const briefFills = async <T>(
    user: string,
    orderId: number,
    read: (update: OrderUpdate) => T | undefined,
  ) => {
    const own = new Map<number, Fill>()
    const accept = (message: ChannelMessage<'userFills'>): T | undefined => {
      const fills = message.fills.map((fill) => parseFill(fill, user))
      emit(fillListeners, { user, fills: recentOf(fills) })
      for (const fill of fills) if (fill.orderId === orderId) own.set(fill.tradeId, fill)
      return read({ fills: [...own.values()], isList: true })
    }
    for (const withinMs of briefFillsMs) {
      const found = await brief.read(user, 'userFills', accept, withinMs)
      if (found !== undefined) return found
    }
    return undefined
  }

  const listenToMids = () =>
    keepSubscribed({ channel: 'allMids' }, (message) => {
      if (!message) return
      const mids = new Map(Object.entries(message.mids).map(([coin, price]) => [coin, plain(price)]))
      known = { mids, atMs: nowMs() }
      emit(midsListeners, mids)
    })

  /** Pings are answered by a connection that has forgotten its subscriptions, too. */
  const watchdog = setInterval(() => {
    if (!connected || !midsTopic || nowMs() - lastMessageMs < silentMs) return
    lastMessageMs = nowMs()
    void open().then(({ socket }) => socket.reconnect())
  }, watchdogEveryMs)
  watchdog.unref()

  return {
    mids() {
      midsTopic ??= listenToMids()
      return known && nowMs() - known.atMs <= freshMs ? known.mids : undefined
    },
    onMids(listener) {
      midsListeners.add(listener)
      return { [Symbol.dispose]: () => void midsListeners.delete(listener) }
    },
    follow(user, listener) {
      const name = user.toLowerCase()
      if (users.has(name) || users.size >= lastingMax) return undefined
      midsTopic ??= listenToMids()
      const parts = new DisposableStack()
      const onEvent = (streamEvent: UserEvent) => {
        if (streamEvent.type === 'fills') orderUpdates.fills(streamEvent.fills)
        emit([listener], streamEvent)
      }
      for (const topic of userTopics(keepSubscribed, name, onEvent)) parts.use(topic)
      parts.use(
        keepSubscribed({ channel: 'orderUpdates', user: name }, (list) => {
          // The message names no user, so each subscription on the connection hears it.
          if (!list || list === lastOrderMessage) return
          lastOrderMessage = list
          for (const { order, status } of list)
            orderUpdates.order(order.oid, status === 'open' ? leftOf(order) : undefined, order.cloid)
          emit(orderListeners, list.map(parseOrderEvent))
        }),
      )
      for (const topic of stateTopics(keepSubscribed, name, (state) => emit(stateListeners, state)))
        parts.use(topic)
      parts.defer(() => users.delete(name))
      users.set(name, parts)
      return parts
    },
    async readOrder(user, id, read) {
      if (!connected) return undefined
      const name = user.toLowerCase()
      if (users.has(name)) return orderUpdates.waitFor(id, read, orderWaitMs)
      return typeof id === 'number' ? briefFills(name, id, read) : undefined
    },
    brief: async (user, ...how) =>
      connected && !users.has(user.toLowerCase()) ? brief.read(user, ...how) : undefined,
    onFills(listener) {
      fillListeners.add(listener)
      return { [Symbol.dispose]: () => void fillListeners.delete(listener) }
    },
    onOrders(listener) {
      orderListeners.add(listener)
      return { [Symbol.dispose]: () => void orderListeners.delete(listener) }
    },
    onState(listener) {
      stateListeners.add(listener)
      return { [Symbol.dispose]: () => void stateListeners.delete(listener) }
    },
    followedSinceMs: (user) => (connected && users.has(user.toLowerCase()) ? openedMs : undefined),
    lastMessageMs: () => (connected ? lastMessageMs : 0),
    state: () => ({ connected, hasMids: known !== undefined, users: users.size, connections, unreadable }),
    async [Symbol.asyncDispose]() {
      clearInterval(watchdog)
      ended.abort()
      for (const topic of [...users.values()]) topic[Symbol.dispose]()
      midsTopic?.[Symbol.dispose]()
      const transport = await connecting?.catch(() => undefined)
      transport?.close()
    },
  }
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
