import type { Log } from '#kernel/log.ts'
import { createListeners } from './listeners.ts'
import { announceEveryMs, createInterests, userInterest } from './topic-interests.ts'

/**
 * Hints that something changed. A lost hint costs one poll interval, never correctness, so the bus may be
 * anything: LISTEN/NOTIFY here, a message broker in a large installation.
 */
export type MessageBus = {
  publish(payload: string): Promise<void>
  /** Calls back with each payload, and with undefined after a gap in which hints may have been lost. */
  subscribe(onPayload: (payload: string | undefined) => void): AsyncDisposable
}

type Listener = () => void

export type Notifier = {
  /** Notifies local listeners at once, and listening peers within a few milliseconds. */
  notify(topics: string[]): void
  /**
   * Like `notify`, but all instances get the topics, and a failure of the bus only delays them: for changes that no poll
   * would find later.
   */
  broadcast(topics: string[]): void
  /** Listens to a topic; peers learn of the interest, and send their hints, a few milliseconds after the call. */
  on(topic: string, listener: Listener): Disposable
  /** Calls back with each topic that reaches this instance; broadcast topics and `gapTopic` always do. */
  onAny(listener: (topic: string) => void): void
} & AsyncDisposable

/** The topic for the end of a task. */
export const taskTopic = (taskId: string, userId: string): string => `t:${taskId}:${userInterest(userId)}`
export const userTopic = (userId: string): string => `u:${userId}`
export const userOfTopic = (topic: string): string | undefined =>
  topic.startsWith('u:') ? topic.slice(2) : undefined
/** The topic for a change of a user's webhooks: every instance reads again whether the user has any. */
export const webhooksTopic = (userId: string): string => `w:${userId}`
export const userOfWebhooksTopic = (topic: string): string | undefined =>
  topic.startsWith('w:') ? topic.slice(2) : undefined
export const mailboxTopic = (mailboxId: string): string => `m:${mailboxId}`
/** The topic for a revoked token, or one of a suspended user: caches read the token again. */
export const revokedTopic = (tokenHash: string): string => `${revokedPrefix}${tokenHash}`
const revokedPrefix = 'r:'
export const revokedHash = (topic: string): string | undefined =>
  topic.startsWith(revokedPrefix) ? topic.slice(revokedPrefix.length) : undefined
/** The topic for a suspended user, or one whose tokens or keys were revoked: streams check their token again. */
export const accessTopic = (userId: string): string => `a:${userId}`
export const userOfAccessTopic = (topic: string): string | undefined =>
  topic.startsWith('a:') ? topic.slice(2) : undefined
export const sponsorsTopic = 'sponsors'
/** The topic for a ready task that no instance has leased. */
export const readyTopic = 'ready'
/** The topic for a slot of a schedule that is due sooner than the next poll would find it. */
export const slotsTopic = 'slots'
/** The topic, local to an instance, for hints that may have been lost while the bus was disconnected. */
export const gapTopic = 'gap'

/** The first hint is sent at once; hints within this time are coalesced. */
const flushAfterMs = 5
/** NOTIFY refuses payloads of 8000 bytes and more. */
const payloadBytesMax = 7_900
const retryAfterMs = 250

/**
 * A payload consists of topics, of announcements of the topics that an instance listens to (`+`), and of the question
 * (`?`) which topics the other instances listen to.
 */
const interestPrefix = '+'
const question = '?'
const interestOf = (topic: string): string =>
  topic.startsWith('u:') || topic.startsWith('t:') ? userInterest(topic) : topic

function firstItems(from: string, items: Iterable<string>): string[] {
  const taken: string[] = []
  let bytes = from.length
  for (const item of items) {
    bytes += item.length + 1
    if (bytes > payloadBytesMax) break
    taken.push(item)
  }
  return taken
}

/** Publishes topics from a process that is not an instance; `from` is an id that no instance has. */
export async function publishTopics(
  bus: Pick<MessageBus, 'publish'>,
  from: string,
  topics: readonly string[],
): Promise<void> {
  for (let left = topics; left.length > 0; ) {
    const taken = firstItems(from, left)
    await bus.publish([from, ...taken].join(','))
    left = left.slice(taken.length)
  }
}

type NotifierDeps = { bus: MessageBus; instanceId: string; log: Log; nowMs?: () => number }

export function createNotifier({
  bus,
  instanceId,
  log,
  nowMs = () => performance.now(),
}: NotifierDeps): Notifier {
  const topicListeners = createListeners<Listener>()
  const anyTopicListeners: ((topic: string) => void)[] = []
  const interests = createInterests(nowMs)
  /** The interests that this instance announced since it last announced all of them. */
  const announced = new Set<string>()
  const publisher = createPublisher({ bus, instanceId, log, nowMs })

  const deliver = (topic: string) => {
    for (const listener of anyTopicListeners) listener(topic)
    for (const listener of topicListeners.get(topic)) listener()
  }
  const announce = (interest: string) => {
    announced.add(interest)
    publisher.add(interestPrefix + interest, { isRetained: true })
  }
  const announceAll = () => {
    announced.clear()
    for (const topic of topicListeners.keys()) announce(interestOf(topic))
  }
  const subscription = bus.subscribe((payload) => {
    if (payload === undefined) {
      interests.onGap()
      publisher.add(question, { isRetained: true })
      announceAll()
      deliver(gapTopic)
      return topicListeners.keys().forEach(deliver)
    }
    const [from, ...items] = payload.split(',')
    if (from === instanceId) return
    for (const item of items) {
      if (item === question) announceAll()
      else if (item.startsWith(interestPrefix)) interests.add(item.slice(interestPrefix.length))
      else deliver(item)
    }
  })
  const announcing = setInterval(() => {
    interests.sweep()
    announceAll()
  }, announceEveryMs).unref()

  return {
    broadcast(topics) {
      for (const topic of topics) {
        deliver(topic)
        publisher.add(topic, { isRetained: true })
      }
    },
    notify(topics) {
      for (const topic of topics) {
        deliver(topic)
        if (interests.isWanted(interestOf(topic))) publisher.add(topic, { isRetained: false })
      }
    },
    on(topic, listener) {
      const interest = interestOf(topic)
      if (!announced.has(interest)) announce(interest)
      return topicListeners.on(topic, listener)
    },
    onAny(listener) {
      anyTopicListeners.push(listener)
    },
    async [Symbol.asyncDispose]() {
      clearInterval(announcing)
      await publisher[Symbol.asyncDispose]()
      await subscription[Symbol.asyncDispose]()
    },
  }
}

type Publisher = {
  /** Queues an item for the bus; a retained item is sent again until the bus accepts it. */
  add(item: string, options: { isRetained: boolean }): void
} & AsyncDisposable

/** One payload is in flight at a time, so that a slow bus takes one connection; later items form the next payload. */
function createPublisher({ bus, instanceId, log, nowMs }: Required<NotifierDeps>): Publisher {
  const queued = new Set<string>()
  const retained = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let flushedMs = Number.NEGATIVE_INFINITY
  let flushing: Promise<void> | undefined
  let closing = false

  async function publish(items: string[]): Promise<boolean> {
    try {
      await bus.publish([instanceId, ...items].join(','))
      return true
    } catch (error) {
      log.debug({ error }, 'hint not published; the poll finds the change')
      return false
    }
  }
  const flushAll = async (): Promise<void> => {
    while (queued.size > 0) {
      flushedMs = nowMs()
      const items = firstItems(instanceId, queued)
      for (const item of items) queued.delete(item)
      const undelivered = items.filter((item) => retained.delete(item))
      if ((await publish(items)) || undelivered.length === 0) continue
      for (const item of undelivered) enqueue(item, { isRetained: true })
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
  function enqueue(item: string, { isRetained }: { isRetained: boolean }) {
    queued.add(item)
    if (isRetained) retained.add(item)
  }
  return {
    add(item, options) {
      enqueue(item, options)
      if (!flushing) schedule()
    },
    async [Symbol.asyncDispose]() {
      closing = true
      clearTimeout(timer)
      await flush()
    },
  }
}
