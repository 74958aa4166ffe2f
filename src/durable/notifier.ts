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
  /** Tells waiters here at once and other instances, where there are any, within a few milliseconds. */
  notify(topics: string[]): void
  /**
   * The same, also where no other instance was counted, and again until the bus takes it: for what nobody finds out by
   * looking again.
   */
  broadcast(topics: string[]): void
  on(topic: string, listener: Listener): Disposable
  /** Every topic that is hinted, here or elsewhere, and `gapTopic`. */
  onAny(listener: (topic: string) => void): void
  /** How many other instances were alive a moment ago. */
  setPeerCount(others: number): void
} & AsyncDisposable

export const taskTopic = (taskId: string): string => `t:${taskId}`
export const userTopic = (userId: string): string => `u:${userId}`
/** A token was revoked, or its user suspended: instances that cache the token read it again. */
export const revokedTopic = (tokenHash: string): string => `${revokedPrefix}${tokenHash}`
const revokedPrefix = 'r:'
export const revokedHash = (topic: string): string | undefined =>
  topic.startsWith(revokedPrefix) ? topic.slice(revokedPrefix.length) : undefined
/** Tokens or keys of a user were revoked, or the user was suspended: a stream ends unless its token still counts. */
export const accessTopic = (userId: string): string => `a:${userId}`
/** An account that pays for gas was paused, or may pay again. */
export const sponsorsTopic = 'sponsors'
/** Work became ready that no instance has leased. */
export const readyTopic = 'ready'
/** Told here after a time in which anything may have been told elsewhere and not heard. */
export const gapTopic = 'gap'

/** The first hint goes out at once; those that follow closely go together. */
const flushAfterMs = 5
/** A topic has at most 70 characters, and NOTIFY refuses payloads of 8000 bytes and more. */
const topicsPerPayload = 100
/** A new instance publishes before its row exists, so assume peers for this long after hearing one. */
const peerTtlMs = 30_000
/** Until what has to arrive is handed to the bus again. */
const retryAfterMs = 250

/** Hints from a process that waits for none. `from` is an id that no instance has. */
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
  /** Without topics it is a greeting. False where the bus did not take it. */
  async function publish(topics: string[]): Promise<boolean> {
    try {
      await bus.publish([instanceId, ...topics].join(','))
      return true
    } catch (error) {
      log.debug({ error }, 'a wake hint was lost; the poll finds the change')
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
      for (const topic of undelivered) enqueue(topic, true)
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

  function enqueue(topic: string, isBroadcast: boolean) {
    queued.add(topic)
    if (isBroadcast) retained.add(topic)
  }
  const deliverAndQueue = (topics: string[], isBroadcast: boolean) => {
    for (const topic of topics) {
      deliver(topic)
      enqueue(topic, isBroadcast)
    }
    if (!flushing) schedule()
  }

  return {
    broadcast: (topics) => deliverAndQueue(topics, true),
    notify(topics) {
      if (peerCount === 0) topics.forEach(deliver)
      else deliverAndQueue(topics, false)
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
