import { repeat } from '#kernel/async/repeat.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'

/** The clock of the local world, which its control port advances. It never goes back. */

type Options = {
  /** The control port of the world. */
  url: string
  net: Net
  clock: Clock
  log: Log
  everyMs?: number
}
export type WorldClock = Clock & {
  /** Calls the listener when the world has advanced, so that work that waits for a time checks it again. */
  onJump(listener: () => void): void
} & AsyncDisposable

const everyMsDefault = 1_000
/**
 * The world's clock and this one run at the same speed, so a difference of at least this size is an advance of the
 * world and not a network delay.
 */
const jumpMsMin = 1_000

export async function openWorldClock(options: Options): Promise<WorldClock> {
  const { url, net, clock, log, everyMs = everyMsDefault } = options
  const listeners: (() => void)[] = []
  let aheadMs = 0
  let lastMs = 0
  const poll = async () => {
    const { status, body } = await net.fetch({
      url: `${url}/time`,
      method: 'GET',
      headers: {},
      timeoutMs: everyMs,
      maxBytes: 1_024,
    })
    const read: unknown = status === 200 ? JSON.parse(body) : undefined
    if (!isRecord(read) || typeof read.offset_seconds !== 'number')
      throw new Error(`the world answered ${status} for its time`)
    const readMs = read.offset_seconds * 1_000
    const hasJumped = readMs - aheadMs >= jumpMsMin
    aheadMs = Math.max(aheadMs, readMs)
    if (hasJumped) for (const listener of listeners) listener()
  }
  const onError = (error: unknown) => log.debug({ error }, 'time of the world not read; it is read again')
  await poll().catch(onError)
  const polling = repeat(poll, { everyMs, onError })
  return {
    now() {
      lastMs = Math.max(lastMs, later(clock.now(), aheadMs).getTime())
      return new Date(lastMs)
    },
    onJump: (listener) => void listeners.push(listener),
    [Symbol.asyncDispose]: () => polling[Symbol.asyncDispose](),
  }
}
