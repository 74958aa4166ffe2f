import type { Log } from '#kernel/log.ts'
import { listeners } from './listeners.ts'

/**
 * Hints that something changed. A lost hint costs one poll interval, never correctness, so the bus may be anything:
 * LISTEN/NOTIFY here, a message broker in a large installation.
 */
export type WakeBus = {
  publish(payload: string): Promise<void>
  /** Calls back with each payload, and with undefined after a gap in which hints may have been lost. */
  subscribe(hear: (payload: string | undefined) => void): AsyncDisposable
}

type Hear = () => void

export type Wake = {
  /** Tells waiters here at once and other instances, where there are any, within a few milliseconds. */
  hint(topics: string[]): void
  /**
   * The same, also where no other instance was counted, and again until the bus takes it: for what nobody finds out by
   * looking again.
   */
  proclaim(topics: string[]): void
  on(topic: string, hear: Hear): Disposable
  /** Every topic that is hinted, here or elsewhere, and `gapTopic`. */
  each(hear: (topic: string) => void): void
  /** How many other instances were alive a moment ago. */
  company(others: number): void
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
const topicsPerHint = 100
/** A new instance publishes before its row exists, so assume peers for this long after hearing one. */
const greetedForMs = 30_000
/** Until what has to arrive is handed to the bus again. */
const retryAfterMs = 250

/** Hints from a process that waits for none. `from` is an id that no instance has. */
export async function publishTopics(
  bus: Pick<WakeBus, 'publish'>,
  from: string,
  topics: readonly string[],
): Promise<void> {
  for (let at = 0; at < topics.length; at += topicsPerHint)
    await bus.publish([from, ...topics.slice(at, at + topicsPerHint)].join(','))
}

type Needs = { bus: WakeBus; instanceId: string; log: Log; nowMs?: () => number }

export function wake({ bus, instanceId, log, nowMs = () => performance.now() }: Needs): Wake {
  const waiters = listeners<Hear>()
  const waiting = new Set<string>()
  const proclaimed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let flushedMs = 0
  let others = 1
  let heardMs = Number.NEGATIVE_INFINITY

  const onAnyTopic: ((topic: string) => void)[] = []

  const tell = (topic: string) => {
    for (const hear of onAnyTopic) hear(topic)
    for (const hear of waiters.of(topic)) hear()
  }
  const subscription = bus.subscribe((payload) => {
    if (payload === undefined) {
      void publish([])
      tell(gapTopic)
      return waiters.keys().forEach(tell)
    }
    const [from, ...topics] = payload.split(',')
    if (from === instanceId) return
    heardMs = nowMs()
    others = Math.max(others, 1)
    topics.forEach(tell)
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
    while (waiting.size > 0) {
      flushedMs = nowMs()
      const topics = [...waiting].slice(0, topicsPerHint)
      for (const topic of topics) waiting.delete(topic)
      const again = topics.filter((topic) => proclaimed.delete(topic))
      if ((await publish(topics)) || again.length === 0) continue
      for (const topic of again) enqueue(topic, true)
      return schedule(retryAfterMs)
    }
  }
  const flush = () => {
    timer = undefined
    flushing ??= flushAll().finally(() => {
      flushing = undefined
      if (waiting.size > 0) schedule()
    })
    return flushing
  }
  const schedule = (afterMs = nowMs() - flushedMs > flushAfterMs ? 0 : flushAfterMs) => {
    if (!closing) timer ??= setTimeout(() => void flush(), afterMs)
  }

  function enqueue(topic: string, isProclaimed: boolean) {
    waiting.add(topic)
    if (isProclaimed) proclaimed.add(topic)
  }
  const spread = (topics: string[], isProclaimed: boolean) => {
    for (const topic of topics) {
      tell(topic)
      enqueue(topic, isProclaimed)
    }
    if (!flushing) schedule()
  }

  return {
    proclaim: (topics) => spread(topics, true),
    hint(topics) {
      if (others === 0) topics.forEach(tell)
      else spread(topics, false)
    },
    on: waiters.on,
    each(hear) {
      onAnyTopic.push(hear)
    },
    company(count) {
      if (count > 0 || nowMs() - heardMs > greetedForMs) others = count
    },
    async [Symbol.asyncDispose]() {
      closing = true
      clearTimeout(timer)
      await flush()
      await subscription[Symbol.asyncDispose]()
    },
  }
}
