import type { WebSocketTransport } from '@nktkas/hyperliquid'
import { createKeyCounts } from '#kernel/async/key-counts.ts'
import type { Channel, ChannelMessage } from './wire.ts'

/**
 * Subscriptions that end with the first useful message. A subscription begins with a snapshot and costs no
 * request weight, so accounts without a lasting stream are read this way; requests remain the fallback.
 */

type Subscriber = Pick<WebSocketTransport, 'subscribe'>
type Deps = {
  /** The venue's limit of users per address, minus the lasting subscriptions. */
  usersMax: number
  nowMs: () => number
  open: () => Promise<Subscriber>
  read: <K extends Channel>(channel: K, detail: unknown) => ChannelMessage<K> | undefined
}
export type SnapshotSubscriptions = {
  /** Returns the first defined result of `accept` for a message; undefined at a limit or after `withinMs`. */
  read<K extends UserChannel, T>(
    user: string,
    channel: K,
    accept: (message: ChannelMessage<K>) => T | undefined,
    withinMs: number,
  ): Promise<T | undefined>
}
/** The messages of these channels name their user and begin with a snapshot. */
export type UserChannel = 'userFills' | 'clearinghouseState' | 'openOrders' | 'spotState'

/** The venue accepts 2,000 messages per minute and address; lasting subscriptions and pings need few of them. */
const messagesPerMinute = 1_000
const messagesEach = 2
const minuteMs = 60_000
const queueMax = 50

type SlotWait = 'admitted' | 'timed_out'

export function createSnapshotSubscriptions({ usersMax, nowMs, open, read }: Deps): SnapshotSubscriptions {
  const active = createKeyCounts()
  const queue: { user: string; end: (wait: SlotWait) => void }[] = []
  let sentAt: number[] = []

  const enter = (user: string): boolean => {
    if (active.get(user) === 0 && active.size() >= usersMax) return false
    active.add(user)
    return true
  }
  const leave = (user: string): void => {
    active.remove(user)
    for (const waiting of [...queue]) {
      if (!enter(waiting.user)) continue
      queue.splice(queue.indexOf(waiting), 1)
      waiting.end('admitted')
    }
  }
  const waitForSlot = (user: string, withinMs: number): Promise<boolean> => {
    if (enter(user)) return Promise.resolve(true)
    if (usersMax === 0 || queue.length >= queueMax) return Promise.resolve(false)
    return new Promise((resolve) => {
      const waiting = {
        user,
        end: (wait: SlotWait) => {
          clearTimeout(timer)
          resolve(wait === 'admitted')
        },
      }
      const timer = setTimeout(() => {
        queue.splice(queue.indexOf(waiting), 1)
        waiting.end('timed_out')
      }, withinMs)
      queue.push(waiting)
    })
  }
  const mayRead = (): boolean => {
    const now = nowMs()
    sentAt = sentAt.filter((atMs) => now - atMs < minuteMs)
    if ((sentAt.length + 1) * messagesEach > messagesPerMinute) return false
    sentAt.push(now)
    return true
  }

  const first = async <K extends UserChannel, T>(
    user: string,
    channel: K,
    accept: (message: ChannelMessage<K>) => T | undefined,
    withinMs: number,
  ): Promise<{ value: T | undefined; ended?: Promise<unknown> }> => {
    const { promise, resolve } = Promise.withResolvers<T | undefined>()
    const timer = setTimeout(resolve, withinMs, undefined)
    const listen = (event: CustomEvent<unknown>) => {
      const message = read(channel, event.detail)
      if (!message || (message as { user: string }).user.toLowerCase() !== user) return
      try {
        const value = accept(message)
        if (value !== undefined) resolve(value)
      } catch {
        // An exception in a listener would end the process; the caller falls back to a request.
        resolve(undefined)
      }
    }
    try {
      const transport = await open()
      const signal = AbortSignal.timeout(withinMs)
      const held = await transport.subscribe(channel, { type: channel, user }, listen, { signal })
      const value = await promise
      const ended = held.unsubscribe().catch(() => undefined)
      return { value, ended }
    } catch {
      return { value: undefined }
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async read(user, channel, accept, withinMs) {
      const name = user.toLowerCase()
      const untilMs = nowMs() + withinMs
      if (!(await waitForSlot(name, withinMs))) return undefined
      const leftMs = untilMs - nowMs()
      if (leftMs <= 0 || !mayRead()) {
        leave(name)
        return undefined
      }
      const { value, ended } = await first(name, channel, accept, leftMs)
      // The slot is free once the venue has ended the subscription.
      void Promise.resolve(ended).finally(() => leave(name))
      return value
    },
  }
}
