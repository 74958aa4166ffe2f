import type { Log } from '#kernel/log.ts'
import { listeners } from './listeners.ts'

/**
 * Hints that something changed. A lost hint costs one poll interval, never correctness, so the bus may be anything:
 * LISTEN/NOTIFY here, a message broker in a large installation.
 */
export type MessageBus = {
  publish(payload: string): Promise<void>
  /** Calls back with each payload, and with undefined after a gap in which hints may have been lost. */
  subscribe(onPayload: (payload: string | undefined) => void): AsyncDisposable
}

type Listener = () => void

export type Notifier = {
  /** Notifies local listeners at once, and peers within a few milliseconds. */
  notify(topics: string[]): void
  /** Like `notify`, but sent even without known peers and retried until the bus accepts it: for topics without a poll. */
  broadcast(topics: string[]): void
  on(topic: string, listener: Listener): Disposable
  /** Receives every topic, local or remote, and `gapTopic`. */
  onAny(listener: (topic: string) => void): void
  /** The number of other live instances. */
  setPeerCount(others: number): void
} & AsyncDisposable

export const taskTopic = (taskId: string): string => `t:${taskId}`
export const userTopic = (userId: string): string => `u:${userId}`
/** A token was revoked or its user suspended: caches of the token read it again. */
export const revokedTopic = (tokenHash: string): string => `${revokedPrefix}${tokenHash}`
const revokedPrefix = 'r:'
export const revokedHash = (topic: string): string | undefined =>
  topic.startsWith(revokedPrefix) ? topic.slice(revokedPrefix.length) : undefined
/** Tokens or keys of a user were revoked, or the user was suspended: streams check their token again. */
export const accessTopic = (userId: string): string => `a:${userId}`
/** A sponsor was paused or unpaused. */
export const sponsorsTopic = 'sponsors'
/** An unleased task became ready. */
export const readyTopic = 'ready'
/** Local only: hints may have been lost while the bus was disconnected. */
export const gapTopic = 'gap'

/** The first hint is sent at once; hints within this time are coalesced. */
const flushAfterMs = 5
/** A topic has at most 70 characters, and NOTIFY refuses payloads of 8000 bytes and more. */
const topicsPerPayload = 100
/** A new instance publishes before its row exists, so assume peers for this long after a message of one. */
const peerTtlMs = 30_000
/** The pause before a failed broadcast is retried. */
const retryAfterMs = 250

/** Publishes from a process that is no instance; `from` is an id that no instance has. */
export async function publishTopics(
  bus: Pick<MessageBus, 'publish'>,
  from: string,
  topics: readonly string[],
): Promise<void> {
  for (let at = 0; at < topics.length; at += topicsPerPayload)
    await bus.publish([from, ...topics.slice(at, at + topicsPerPayload)].join(','))
}

type NotifierDeps = { bus: MessageBus; instanceId: string; log: Log; nowMs?: () => number }

export function createNotifier({
  bus,
  instanceId,
  log,
  nowMs = () => performance.now(),
}: NotifierDeps): Notifier {
  const topicListeners = listeners<Listener>()
  const queued = new Set<string>()
  const retained = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let flushedMs = 0
  let peerCount = 1
  let peerSeenMs = Number.NEGATIVE_INFINITY

  const anyTopicListeners: ((topic: string) => void)[] = []

  const deliver = (topic: string) => {
    for (const listener of anyTopicListeners) listener(topic)
    for (const listener of topicListeners.get(topic)) listener()
  }
  const subscription = bus.subscribe((payload) => {
    if (payload === undefined) {
      void publish([])
      deliver(gapTopic)
      return topicListeners.keys().forEach(deliver)
    }
    const [from, ...topics] = payload.split(',')
    if (from === instanceId) return
    peerSeenMs = nowMs()
    peerCount = Math.max(peerCount, 1)
    topics.forEach(deliver)
  })
  /** An empty payload announces this instance. False where the bus failed. */
  async function publish(topics: string[]): Promise<boolean> {
    try {
      await bus.publish([instanceId, ...topics].join(','))
      return true
    } catch (error) {
      log.debug({ error }, 'hint not published; the poll finds the change')
      return false
    }
  }

  /** One payload is in flight at a time, so that a slow bus takes one connection; later topics form the next payload. */
  let flushing: Promise<void> | undefined
  let closing = false
  const flushAll = async (): Promise<void> => {
    while (queued.size > 0) {
      flushedMs = nowMs()
      const topics = [...queued].slice(0, topicsPerPayload)
      for (const topic of topics) queued.delete(topic)
      const undelivered = topics.filter((topic) => retained.delete(topic))
      if ((await publish(topics)) || undelivered.length === 0) continue
      for (const topic of undelivered) enqueue(topic, { isBroadcast: true })
      return schedule(retryAfterMs)
    }
  }
  const flush = () => {
    timer = undefined
    flushing ??= flushAll().finally(() => {
      flushing = undefined
      if (queued.size > 0) schedule()
    })
    return flushing
  }
  const schedule = (afterMs = nowMs() - flushedMs > flushAfterMs ? 0 : flushAfterMs) => {
    if (!closing) timer ??= setTimeout(() => void flush(), afterMs)
  }

  function enqueue(topic: string, { isBroadcast }: { isBroadcast: boolean }) {
    queued.add(topic)
    if (isBroadcast) retained.add(topic)
  }
  const deliverAndQueue = (topics: string[], options: { isBroadcast: boolean }) => {
    for (const topic of topics) {
      deliver(topic)
      enqueue(topic, options)
    }
    if (!flushing) schedule()
  }

  return {
    broadcast: (topics) => deliverAndQueue(topics, { isBroadcast: true }),
    notify(topics) {
      if (peerCount === 0) topics.forEach(deliver)
      else deliverAndQueue(topics, { isBroadcast: false })
    },
    on: topicListeners.on,
    onAny(listener) {
      anyTopicListeners.push(listener)
    },
    setPeerCount(count) {
      if (count > 0 || nowMs() - peerSeenMs > peerTtlMs) peerCount = count
    },
    async [Symbol.asyncDispose]() {
      closing = true
      clearTimeout(timer)
      await flush()
      await subscription[Symbol.asyncDispose]()
    },
  }
}
