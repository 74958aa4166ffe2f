import type { Log } from '#kernel/log.ts'
import { hearers } from './hearers.ts'

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
/** Work became ready that no instance has leased. */
export const readyTopic = 'ready'

/** The first hint goes out at once; those that follow closely go together. */
const flushAfterMs = 5
/** A topic has at most 70 characters, and NOTIFY refuses payloads of 8000 bytes and more. */
const topicsPerHint = 100
/** Whoever comes is heard before it is counted: for so long nobody counts as alone again. */
const greetedForMs = 30_000

type Needs = { bus: WakeBus; instanceId: string; log: Log; nowMs?: () => number }

export function wake({ bus, instanceId, log, nowMs = () => performance.now() }: Needs): Wake {
  const waiters = hearers<Hear>()
  let waiting = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let flushedMs = 0
  let others = 1
  let heardMs = Number.NEGATIVE_INFINITY

  const listeners: ((topic: string) => void)[] = []

  const tell = (topic: string) => {
    for (const hear of listeners) hear(topic)
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

  const flush = async () => {
    timer = undefined
    flushedMs = nowMs()
    const topics = [...waiting]
    waiting = new Set()
    for (let at = 0; at < topics.length; at += topicsPerHint)
      await publish(topics.slice(at, at + topicsPerHint))
  }

  const proclaim = (topics: string[]) => {
    for (const topic of topics) {
      tell(topic)
      waiting.add(topic)
    }
    timer ??= setTimeout(() => void flush(), nowMs() - flushedMs > flushAfterMs ? 0 : flushAfterMs)
  }

  return {
    proclaim,
    hint(topics) {
      if (others === 0) topics.forEach(tell)
      else proclaim(topics)
    },
    on: waiters.on,
    each(hear) {
      listeners.push(hear)
    },
    company(count) {
      if (count > 0 || nowMs() - heardMs > greetedForMs) others = count
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(timer)
      if (waiting.size > 0) await flush()
      await subscription[Symbol.asyncDispose]()
    },
  }
}
