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
  /** The same, also where no other instance was counted: for what nobody finds out by looking again. */
  proclaim(topics: string[]): void
  on(topic: string, hear: Hear): Disposable
  /** Every topic that is hinted, here or elsewhere. */
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

/** The first hint goes out at once; those that follow closely go together. */
const flushAfterMs = 5
/** A topic has at most 70 characters, and NOTIFY refuses payloads of 8000 bytes and more. */
const topicsPerHint = 100
/** A new instance publishes before its row exists, so assume peers for this long after hearing one. */
const greetedForMs = 30_000

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
      return waiters.keys().forEach(tell)
    }
    const [from, ...topics] = payload.split(',')
    if (from === instanceId) return
    heardMs = nowMs()
    others = Math.max(others, 1)
    topics.forEach(tell)
  })
  /** Without topics it is a greeting. */
  async function publish(topics: string[]): Promise<void> {
    await bus
      .publish([instanceId, ...topics].join(','))
      .catch((error: unknown) => log.debug({ error }, 'a wake hint was lost; the poll finds the change'))
  }

  /** One payload is in flight at a time, so that a slow bus takes one connection; later topics form the next payload. */
  let flushing: Promise<void> | undefined
  const flushAll = async () => {
    while (waiting.size > 0) {
      flushedMs = nowMs()
      const topics = [...waiting].slice(0, topicsPerHint)
      for (const topic of topics) waiting.delete(topic)
      await publish(topics)
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
  const schedule = () => {
    timer ??= setTimeout(() => void flush(), nowMs() - flushedMs > flushAfterMs ? 0 : flushAfterMs)
  }

  const proclaim = (topics: string[]) => {
    for (const topic of topics) {
      tell(topic)
      waiting.add(topic)
    }
    if (!flushing) schedule()
  }

  return {
    proclaim,
    hint(topics) {
      if (others === 0) topics.forEach(tell)
      else proclaim(topics)
    },
    on: waiters.on,
    each(hear) {
      onAnyTopic.push(hear)
    },
    company(count) {
      if (count > 0 || nowMs() - heardMs > greetedForMs) others = count
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(timer)
      await flush()
      await subscription[Symbol.asyncDispose]()
    },
  }
}
